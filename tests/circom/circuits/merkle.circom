pragma circom 2.0.0;
include "circomlib/circuits/poseidon.circom";
include "circomlib/circuits/switcher.circom";

template MerklePath(levels) {
    signal input leaf;
    signal input siblings[levels];
    signal input sides[levels];
    signal output root;
    signal nodes[levels + 1];
    component switchers[levels];
    component hashes[levels];
    nodes[0] <== leaf;
    for (var i = 0; i < levels; i++) {
        sides[i] * (1 - sides[i]) === 0;
        switchers[i] = Switcher();
        switchers[i].sel <== sides[i];
        switchers[i].L <== nodes[i];
        switchers[i].R <== siblings[i];
        hashes[i] = Poseidon(2);
        hashes[i].inputs <== [switchers[i].outL, switchers[i].outR];
        nodes[i + 1] <== hashes[i].out;
    }
    root <== nodes[levels];
}
component main = MerklePath(6);
