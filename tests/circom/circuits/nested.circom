pragma circom 2.1.0;

// Arrays of arrays, a private and a public signal, an assertion and a log.
template Product(n) {
    signal input a[2][n];
    signal input b;
    signal output out;
    signal products[n];
    var sum = 0;
    for (var i = 0; i < n; i++) {
        products[i] <== a[0][i] * a[1][i];
        sum += products[i];
    }
    log("sum", sum);
    assert(b < 1000);
    out <== sum * b;
}
component main {public [b]} = Product(3);
