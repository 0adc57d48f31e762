pragma circom 2.0.0;
include "circomlib/circuits/multiplexer.circom";

component main {public [sel]} = Multiplexer(2, 16);
