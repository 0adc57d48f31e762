pragma circom 2.0.0;
include "circomlib/circuits/comparators.circom";

template Comparators() {
    signal input a;
    signal input b;
    signal output out[5];
    out[0] <== LessThan(32)([a, b]);
    out[1] <== GreaterEqThan(32)([a, b]);
    out[2] <== IsZero()(a);
    out[3] <== IsEqual()([a, b]);
    out[4] <== LessEqThan(32)([b, a]);
}
component main {public [a]} = Comparators();
