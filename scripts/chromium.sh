#!/usr/bin/env bash
# A Chromium for the test that looks at the dashboard, from Debian's packages if none is installed. Where there is no such
# package the test says that it is skipped.
set -euo pipefail

for browser in chromium chromium-browser google-chrome; do
    command -v $browser > /dev/null && exit 0
done
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
$sudo apt-get -qq update
$sudo apt-get -qq install --no-install-recommends chromium > /dev/null ||
    echo "no Chromium is to be had; the dashboard is not looked at"
