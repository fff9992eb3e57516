import test from 'ava';
import { scanTs } from '../../../../src/playback/ts/scan.ts';
import { decodeIndex, encodeIndex } from '../../../../src/playback/ts/stored-index.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { MemoryFile } from '../../../support/recording/recorded-mp4.ts';
import { distinct, recordedTs } from '../../../support/recording/recorded-ts.ts';
import { seeded } from '../../codecs/vectors.ts';

const [VIDEO, AUDIO] = [videoTrack(), audioTrack()];
const PACKETS = distinct(interleaved(videoPackets(VIDEO, { to: 4, gop: 30 }), audioPackets(AUDIO, { to: 4 })));
const PARTS = await scanTs(new MemoryFile(recordedTs([VIDEO, AUDIO], PACKETS)));
const STORED = Buffer.concat(encodeIndex('stamp', [...PARTS, ...PARTS]));

test('a stored index is the one that the scan made', (t) => {
  t.deepEqual(decodeIndex(STORED, 'stamp'), [...PARTS, ...PARTS]);
});

test('a stored index has its form', (t) => {
  const [{ pieces, movie, ...rest }] = PARTS as [(typeof PARTS)[0]];
  const bytes = Buffer.concat(encodeIndex('stamp', PARTS));
  t.is(bytes.toString('latin1', 0, 16), 'Kiln TS index 1\n');
  const jsonEnd = 20 + bytes.readUInt32LE(16);
  t.deepEqual(JSON.parse(bytes.toString('utf8', 20, jsonEnd)), {
    stamp: 'stamp',
    parts: [{ ...rest, pieces: pieces.from.length, movie: movie.length }],
  });
  const count = pieces.from.length;
  t.is(bytes.readDoubleLE(jsonEnd), pieces.from[0] as number);
  t.is(bytes.readDoubleLE(jsonEnd + 8 * (2 * count - 1)), pieces.to.at(-1) as number);
  t.is(bytes.length, jsonEnd + 25 * count + movie.length + 4);
});

test('a stored index of a file that has changed is not read', (t) => {
  t.is(decodeIndex(STORED, 'stamps'), undefined);
});

test('a stored index that is cut off, longer, changed or foreign is not read', (t) => {
  for (let length = 0; length < STORED.length; length += length < 300 ? 1 : 97)
    t.is(decodeIndex(STORED.subarray(0, length), 'stamp'), undefined);
  t.is(decodeIndex(Buffer.concat([STORED, Buffer.alloc(4)]), 'stamp'), undefined);
  const random = seeded(7);
  for (let round = 0; round < 300; round++) {
    const changed = Buffer.from(STORED);
    changed[Math.floor(random() * changed.length)]! ^= 1 << Math.floor(random() * 8);
    t.is(decodeIndex(changed, 'stamp'), undefined);
    const foreign = Buffer.from(Array.from({ length: 200 }, () => Math.floor(random() * 256)));
    t.is(decodeIndex(foreign, 'stamp'), undefined);
  }
});

test('a stored index whose document does not fit what follows is not read', (t) => {
  const [part] = PARTS as [(typeof PARTS)[0]];
  const others: (typeof PARTS)[] = [
    [],
    [{ ...part, lanes: [{ pid: 256, form: 'AC-3' as never }] }],
    [{ ...part, media: -1 }],
    [{ ...part, begin: 'soon' as never }],
    [{ ...part, pieces: { ...part.pieces, first: new Float64Array(1) } }],
  ];
  for (const parts of others) t.is(decodeIndex(Buffer.concat(encodeIndex('stamp', parts)), 'stamp'), undefined);
});
