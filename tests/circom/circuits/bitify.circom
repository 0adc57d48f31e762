pragma circom 2.0.0;
include "circomlib/circuits/bitify.circom";

template Bitify() {
    signal input in;
    signal output bits[64];
    signal output back;
    bits <== Num2Bits(64)(in);
    back <== Bits2Num(64)(bits);
}
component main = Bitify();
