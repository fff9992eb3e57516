import { data, RawCaller } from './raw-caller.ts';

/** Sends packets for nobody to a port, as fast as it can, until it is killed. */
const raw = await RawCaller.open(Number(process.argv[2]));
const packet = data(1, 4711, Buffer.alloc(0));
for (;;) {
  await Promise.all(Array.from({ length: 16 }, () => raw.send(packet)));
  await new Promise(setImmediate);
}
