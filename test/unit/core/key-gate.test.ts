import test from 'ava';
import { GopCache } from '../../../src/core/gop-cache.ts';
import { KeyGate } from '../../../src/core/key-gate.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { audio, VIDEO, video } from './support.ts';

/** Two open GOPs in decoding order, by when pictures are shown: two of each are shown before its key frame. */
function openGops(): Packet[] {
  const shown = [2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10];
  return shown.map((at, i) => ({ ...video(i, false, 100, VIDEO, at + 1), key: i % 6 === 0 ? 'open' : false }));
}

const times = (packets: readonly Packet[]) => packets.map(({ pts }) => pts / 90_000 - 1);

test('a reader that begins at an open key frame gets no frames that are shown before it', (t) => {
  const packets = openGops();
  for (const gate of [new KeyGate([VIDEO.id]), new KeyGate()]) {
    if (!gate.waits) gate.silence();
    const passed = packets.filter((packet) => !gate.waits || gate.passes(packet));
    t.deepEqual(times(passed), [2, 5, 3, 4, 8, 6, 7, 11, 9, 10]);
    t.false(gate.waits);
  }
  const loses = new KeyGate();
  loses.lose(packets[3] as Packet);
  t.deepEqual(times(packets.slice(4).filter((packet) => loses.passes(packet))), [8, 11, 9, 10]);
});

test('frames after an IDR picture all pass, and where the picture before was there', (t) => {
  const packets = openGops().map((packet) => ({ ...packet, key: packet.key !== false }));
  const gate = new KeyGate([VIDEO.id]);
  t.is(packets.filter((packet) => gate.passes(packet)).length, packets.length);
  const open = new KeyGate([VIDEO.id]);
  const passed = openGops().filter((packet) => open.passes(packet));
  t.true(times(passed).includes(6), 'the second GOP goes on from the first');
});

test('the caches of streams keep audio beside, and replay an open GOP to a gate as it was', (t) => {
  const cache = new GopCache({ bytes: 1_000_000, seconds: 100 });
  for (const packet of openGops()) {
    cache.packet(packet);
    cache.packet(audio(packet.dts / 90_000));
  }
  const gate = new KeyGate();
  gate.silence();
  const replayed: Packet[] = [];
  cache.replay((packet) => {
    if (!gate.waits || gate.passes(packet)) replayed.push(packet);
  });
  const pictures = replayed.filter(({ track }) => track.type === 'video');
  t.deepEqual(times(pictures), [8, 11, 9, 10]);
  t.true(replayed.length > pictures.length);
});
