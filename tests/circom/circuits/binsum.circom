pragma circom 2.0.0;
include "circomlib/circuits/binsum.circom";

component main = BinSum(16, 3);
