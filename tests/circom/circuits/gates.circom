pragma circom 2.0.0;
include "circomlib/circuits/gates.circom";

template Gates() {
    signal input a;
    signal input b;
    signal input many[7];
    signal output out[6];
    out[0] <== AND()(a, b);
    out[1] <== OR()(a, b);
    out[2] <== XOR()(a, b);
    out[3] <== NAND()(a, b);
    out[4] <== NOT()(a);
    out[5] <== MultiAND(7)(many);
}
component main = Gates();
