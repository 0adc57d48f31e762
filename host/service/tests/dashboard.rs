//! The dashboard, as a browser shows it. Skipped where there is no Chromium; `scripts/chromium.sh` installs one.

mod common;

use common::{Running, component, input, key, manifest, start, upload};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use zkhost_client::Submission;
use zkhost_client::types::JobState;

/// A folder whose name would become an element if the page took names for markup.
const HOSTILE: &str = "<img src=x onerror=\"document.title='owned'\">";

/// Milliseconds of the page's own time after which it is looked at: two refreshes.
const PAGE_MS: u32 = 3000;

/// A Chromium, if there is one.
fn chromium() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(runs)
}

/// Look at the page without a screen. Returns the document as scripts left it and what the browser logged.
async fn look(browser: &'static str, url: String, size: (u32, u32), picture: &Path) -> (String, String) {
    let run = move |flags: &[String]| {
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={},{}", size.0, size.1))
            .arg(format!("--virtual-time-budget={PAGE_MS}"))
            .args(flags)
            .arg(&url)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let screenshot = format!("--screenshot={}", picture.display());
    let [document, log] = tokio::task::spawn_blocking(move || {
        run(&[screenshot]);
        run(&["--dump-dom".into()])
    })
    .await
    .unwrap();
    (document, log)
}

/// What the page shows of a host at some size, which has to have these parts and no fault. The picture is for people.
async fn check_shown(host: &Running, browser: &'static str, size: (u32, u32), parts: &[&str]) {
    let url = format!("http://{}/", host.server.tcp().unwrap());
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dashboard-{}-{}.png", size.0, parts.len()));
    let (document, log) = look(browser, url, size, &picture).await;
    parts.iter().for_each(|part| assert!(document.contains(part), "`{part}` is not in: {document}"));
    assert!(!document.contains("<img") && !document.contains("<title>owned"), "{document}");
    // Errors of scripts and what the content security policy stopped.
    assert!(!log.contains("CONSOLE"), "{log}");
    assert!(std::fs::metadata(&picture).unwrap().len() > 5000);
    println!("{}", picture.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_shows_jobs_slots_circuits_budget_and_failures_and_names_stay_text() {
    let Some(browser) = chromium() else {
        println!("skipped: there is no Chromium to look with; scripts/chromium.sh installs one");
        return;
    };
    let host = start("[listen]\ntcp = \"127.0.0.1:0\"\n[circuits]\nscan_seconds = 1").await;
    check_shown(&host, browser, (1280, 900), &["takes jobs", "no jobs yet", "none is loaded", "device 0 slot 0"]).await;
    let client = host.client();
    let digest = upload(&client).await;
    let files = [client.upload(component().into()).await.unwrap(), client.upload(key().into()).await.unwrap()];
    let second = format!("{}[limits]\nassign_time = 30\n", manifest("output-v2", &files[0].digest, &files[1].digest));
    client.load(&second).await.unwrap();
    let submission =
        Submission { circuit: digest.clone(), wait: Some(Duration::from_secs(60)), ..Submission::default() };
    let mut ids = vec![];
    for _ in 0..3 {
        let job = client.submit(&submission, input().into()).await.unwrap();
        assert_eq!(job.state, JobState::Proved);
        ids.push(job.id);
    }
    let refused = client.submit(&submission, format!("{{\"{HOSTILE}\": 1}}").replace("\"d", "\\\"d").into());
    let failed = refused.await.unwrap();
    assert_eq!(failed.state, JobState::Failed);
    let folder = host.folder.path().join("data/circuits").join(HOSTILE);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("manifest.toml"), format!("name = '''{HOSTILE}'''")).unwrap();
    while client.circuits().await.unwrap().refused.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let parts = [
        &ids[0],
        &ids[2],
        &failed.id,
        "sapling-output",
        "output-v2",
        &digest[..12],
        "device 0 slot 0",
        "synthesis 0",
        "class=\"k-proving\"",
        "memory of guests",
        "arena of assignments",
        "keys on device 0: CPU",
        "bad-input",
        "&lt;img src=x onerror=",
        "expected 1 to 64 letters",
    ];
    for size in [(1280, 1500), (390, 2400)] {
        check_shown(&host, browser, size, &parts).await;
    }
    host.stop().await;
}
