import test from 'ava';
import { Kiln } from '../support/server/kiln.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { CONTROL, control, handshake, INDUCTION, RawCaller } from '../support/srt/raw-caller.ts';
import { until } from '../support/time/until.ts';

const ROUNDS = 3;
const CALLERS = 4;
const MESSAGE = 1316;

test.serial('a server ends in order, with callers on it and under a flood', async (t) => {
  const caller = new SrtCaller(t);
  for (let round = 0; round < ROUNDS; round++) {
    const kiln = await Kiln.start({ srt: {} });
    t.teardown(() => kiln.stop());
    const { srt = 0, srtPlay = 0 } = kiln.ports;
    const calls = await Promise.all(
      Array.from({ length: CALLERS }, (_, i) => caller.call(srt, { streamId: `default/app/s${i}` })),
    );
    t.deepEqual(
      calls.map(({ refused }) => refused),
      calls.map(() => 0),
    );
    await Promise.all(calls.map(({ send }) => send(Buffer.alloc(8 * MESSAGE, 0x47))));
    const floods = [srt, srtPlay].map((port) => flood(port, () => kiln.running));
    await until('the flood is under way', async () => (await kiln.api('/v1/vhosts')).status === 200);
    kiln.signal(round % 2 === 0 ? 'SIGTERM' : 'SIGINT');
    t.is(await kiln.exited(), 0, kiln.log.slice(-1000));
    await Promise.all(floods);
  }
});

/** Handshakes, what belongs to no connection, and bytes, until there is nobody to take them. */
async function flood(port: number, isOn: () => boolean): Promise<void> {
  const raw = await RawCaller.open(port);
  const packets = [
    handshake({ type: INDUCTION }),
    handshake({ cookie: 4711 }),
    handshake({ packetBytes: 76 }),
    control(CONTROL.ack, 5, 1, 2, 3, 4),
    control(CONTROL.shutdown, 9, 0),
    Buffer.alloc(1316, 0x55),
  ];
  while (isOn()) {
    for (const packet of packets) await raw.send(packet);
    await new Promise(setImmediate);
  }
  raw.close();
}
