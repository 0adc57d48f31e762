pragma circom 2.0.0;
include "circomlib/circuits/mux3.circom";

// The multiplexers of an EdDSA verification: one for each window of 3 bits of a 246-bit scalar, which picks one of 8 points.
template WindowMultiplexers(windows) {
    signal input points[windows][2][8];
    signal input bits[windows][3];
    signal output picked[windows][2];
    for (var i = 0; i < windows; i++) {
        picked[i] <== MultiMux3(2)(points[i], bits[i]);
    }
}
component main {public [bits]} = WindowMultiplexers(82);
