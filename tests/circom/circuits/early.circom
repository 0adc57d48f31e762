pragma circom 2.0.0;

// For a compiler before 2.0.7, whose modules have an earlier interface.
template Early(n) {
    signal input a[n];
    signal input b;
    signal output c;
    signal s[n + 1];
    s[0] <== b;
    for (var i = 0; i < n; i++) {
        s[i + 1] <== s[i] * a[i] + i;
    }
    log(b);
    assert(b != 1000);
    c <== s[n];
}

component main {public [b]} = Early(60);
