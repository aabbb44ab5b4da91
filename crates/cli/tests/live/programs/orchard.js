// Waits in known functions, and computes in one: node orchard.js MILLISECONDS, for the recorder to
// learn what node is before it begins. Nothing is printed.
const cell = new Int32Array(new SharedArrayBuffer(4));

function pick() {
    Atomics.wait(cell, 0, 0, 20);
}

const climb = () => pick();

class Orchard {
    harvest() {
        for (let tree = 0; tree < 10; tree++) {
            climb();
        }
    }
}

function crush(milliseconds) {
    let juice = 0;
    const end = Date.now() + milliseconds;
    while (Date.now() < end) {
        for (let i = 0; i < 1000; i++) {
            juice = (juice * 31 + i) % 1009;
        }
    }
    return juice;
}

setTimeout(function begin() {
    new Orchard().harvest();
    crush(400);
}, Number(process.argv[2]));
