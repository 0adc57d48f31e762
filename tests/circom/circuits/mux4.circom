pragma circom 2.0.0;
include "circomlib/circuits/mux4.circom";

component main = MultiMux4(3);
