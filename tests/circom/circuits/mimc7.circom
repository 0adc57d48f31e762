pragma circom 2.0.0;
include "circomlib/circuits/mimc.circom";

component main = MiMC7(91);
