import test from 'ava';
import { demuxTs, encodeTs, PATTERN, TONE, X264 } from '../../../support/mpegts/ts-media.ts';
import { seeded } from '../../../unit/codecs/vectors.ts';

const ROUNDS = 60;

const sources = {
  'H264 and AAC': () => encodeTs([...PATTERN, ...TONE, ...X264, '-c:a', 'aac'], { seconds: 0.5 }),
  'AAC in LATM': () => encodeTs([...TONE, '-c:a', 'aac', '-mpegts_flags', 'latm'], { seconds: 1 }),
  'AC-3': () => encodeTs([...TONE, '-c:a', 'ac3'], { seconds: 1 }),
  MP3: () => encodeTs([...TONE, '-c:a', 'libmp3lame'], { seconds: 1 }),
  Opus: () => encodeTs([...TONE, '-c:a', 'libopus'], { seconds: 1 }),
};

for (const [name, source] of Object.entries(sources)) {
  test(`${name}: whatever becomes of the bytes, nothing is thrown, and no more comes out than went in`, async (t) => {
    const ts = await source();
    const random = seeded(1_381_821);
    const upTo = (limit: number) => Math.floor(random() * limit);
    let read = 0;
    const feed = (bytes: Buffer) => {
      const { pes, units, frames } = demuxTs(bytes, 1 + upTo(3000));
      const payload = pes.reduce((sum, packet) => sum + packet.payload.length, 0);
      if (payload > bytes.length) t.fail(`${payload} bytes out of ${bytes.length}`);
      read += payload;
      for (const { time, compositionTime } of [...units.values()].flat())
        if (!(time >= 0 && time < 2 ** 33 && compositionTime >= 0)) t.fail('no times');
      for (const { time } of [...frames.values()].flat()) if (!Number.isFinite(time)) t.fail('no time');
    };
    for (let round = 0; round < ROUNDS; round++) {
      const spoilt = Buffer.from(ts);
      for (let changes = 1 + upTo(200); changes > 0; changes--) spoilt[upTo(spoilt.length)] = upTo(256);
      feed(spoilt);
      const cut = upTo(ts.length);
      feed(Buffer.concat([ts.subarray(0, cut), ts.subarray(cut + upTo(1000))]));
      // whole packets in any order, some twice, some not at all
      feed(
        Buffer.concat(
          Array.from({ length: 100 }, () => {
            const at = 188 * upTo(ts.length / 188);
            return ts.subarray(at, at + 188);
          }),
        ),
      );
    }
    t.true(read > (ROUNDS * ts.length) / 2, `${read} bytes were read of ${3 * ROUNDS} times ${ts.length}`);
  });
}

test('noise in packets of the PIDs that are read', async (t) => {
  const ts = await sources['H264 and AAC']();
  const random = seeded(3);
  for (let round = 0; round < ROUNDS; round++) {
    const noisy = Buffer.from(ts);
    for (let at = 188 * 3; at < noisy.length; at += 188)
      for (let i = at + 4; i < at + 188; i += 1 + Math.floor(random() * 60)) noisy[i] = Math.floor(random() * 256);
    t.notThrows(() => demuxTs(noisy));
  }
});
