pragma circom 2.0.0;
include "circomlib/circuits/babyjub.circom";

component main {public [x1, y1]} = BabyAdd();
