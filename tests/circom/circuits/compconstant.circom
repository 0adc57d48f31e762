pragma circom 2.0.0;
include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/compconstant.circom";

template BelowConstant() {
    signal input in;
    signal output out;
    signal bits[200] <== Num2Bits(200)(in);
    component compare = CompConstant(123456789012345678901234567890);
    for (var i = 0; i < 254; i++) {
        compare.in[i] <== i < 200 ? bits[i] : 0;
    }
    out <== compare.out;
}
component main = BelowConstant();
