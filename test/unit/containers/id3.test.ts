import test from 'ava';
import { seeded } from '../codecs/vectors.ts';
import { id3Bytes, id3Private, id3Tag, id3WithoutVersion, type Id3Frame } from '../../../src/containers/id3.ts';

/** Frames of a tag, read by the rules of ID3v2.4 alone. */
function read(tag: Buffer): [id: string, content: Buffer][] {
  const size = (at: number) => [0, 1, 2, 3].reduce((sum, i) => sum * 128 + tag.readUInt8(at + i), 0);
  if (tag.toString('latin1', 0, 6) !== 'ID3\x04\0\0' || size(6) !== tag.length - 10) throw new Error('not a tag');
  const frames: [string, Buffer][] = [];
  for (let at = 10; at < tag.length;) {
    const end = at + 10 + size(at + 4);
    if (tag.readUInt16BE(at + 8) !== 0) throw new Error('flags');
    frames.push([tag.toString('latin1', at, at + 4), tag.subarray(at + 10, end)]);
    at = end;
  }
  return frames;
}

test('an ID3 tag is written byte for byte', (t) => {
  const tag = id3Tag([
    { id: 'TXXX', description: 'AirenSoft', value: 'é' },
    { id: 'TIT2', text: 'On' },
    { id: 'PRIV', owner: 'com.example', data: Buffer.of(1, 0, 2) },
  ]);
  const frames = [
    '54585858 0000000d 0000 03 416972656e536f6674 00 c3a9',
    '54495432 00000003 0000 03 4f6e',
    '50524956 0000000f 0000 636f6d2e6578616d706c65 00 010002',
  ];
  t.is(tag.toString('hex'), `494433 0400 00 0000003d ${frames.join('')}`.replaceAll(' ', ''));
});

test('sizes of more than seven bits keep the highest bit of each byte free', (t) => {
  for (const length of [0, 127, 128, 16_383, 16_384, 60_000]) {
    const tag = id3Tag([
      { id: 'TIT2', text: 'x'.repeat(length) },
      { id: 'TXXX', description: 'ключ', value: '' },
    ]);
    const [title, other] = read(tag);
    t.is(title?.[1].length, length + 1);
    t.deepEqual(other, ['TXXX', Buffer.from('\x03ключ\0')]);
    for (const at of [6, 14]) t.true([...tag.subarray(at, at + 4)].every((byte) => byte < 128));
  }
});

test('a tag that lacks its magic and version gets them back, and nothing else does', (t) => {
  const long = id3Tag([{ id: 'TIT2', text: 'x'.repeat(300) }]);
  const short = id3Tag([{ id: 'TXXX', description: 'at', value: '1' }]);
  for (const tag of [long, short, Buffer.concat([long, short])]) t.deepEqual(id3WithoutVersion(tag.subarray(5)), tag);
  // version 3 has sizes of frames of eight bits a byte
  const third = Buffer.from(long);
  third[3] = 3;
  third.writeUInt32BE(301, 14);
  t.deepEqual(id3WithoutVersion(third.subarray(5)), third);
  for (const [from, to] of [
    [0, 40],
    [4, 40],
    [6, 40],
    [5, long.length - 1],
    [5, 8],
    [long.length, long.length],
  ])
    t.is(id3WithoutVersion(long.subarray(from, to)), undefined, `${from}`);
});

const OWNER = 'com.apple.streaming.transportStreamTimestamp';
const STAMP = Buffer.from('00000001fffffff0', 'hex');

test('a tag at the start of some bytes has a size', (t) => {
  const tag = id3Tag([{ id: 'TIT2', text: 'x'.repeat(300) }]);
  t.is(id3Bytes(Buffer.concat([tag, Buffer.of(0xff, 0xf1)])), tag.length);
  for (let end = 0; end < 10; end++) t.is(id3Bytes(tag.subarray(0, end)), undefined);
  t.is(id3Bytes(Buffer.of(0xff, 0xf1)), 0);
  t.is(id3Bytes(Buffer.from('ID3\x04\0\0\xff\0\0\0', 'latin1')), 0);
  // with a footer
  t.is(id3Bytes(Buffer.from('ID3\x04\0\x10\0\0\x01\0', 'latin1')), 148);
});

test('a private frame is found by its owner', (t) => {
  const frames: Id3Frame[] = [
    { id: 'TIT2', text: 'PRIV' },
    { id: 'PRIV', owner: 'other', data: Buffer.of(1) },
    { id: 'PRIV', owner: OWNER, data: STAMP },
  ];
  const tag = id3Tag(frames);
  t.deepEqual(id3Private(tag, OWNER), STAMP);
  t.deepEqual(id3Private(tag, 'other'), Buffer.of(1));
  t.is(id3Private(tag, 'none'), undefined);
  // version 3, whose sizes of frames have eight bits a byte, and an extended header without itself in its size
  const frame = Buffer.concat([Buffer.from('PRIV\0\0\x01\0\0\0', 'latin1'), Buffer.alloc(256, 'o\0')]);
  frame.write(`${OWNER}\0`, 10, 'latin1');
  const extended = Buffer.from('\0\0\0\x06\0\0\0\0\0\0', 'latin1');
  const old = Buffer.concat([Buffer.from('ID3\x03\0\x40\0\0\x02\x14', 'latin1'), extended, frame]);
  t.is(id3Private(old, OWNER)?.length, 256 - OWNER.length - 1);
  // what ffmpeg writes in front of packed audio is read by hand
  const written = Buffer.from('494433040000000000 3f 50524956000000350000'.replaceAll(' ', ''), 'hex');
  t.deepEqual(id3Private(Buffer.concat([written, Buffer.from(`${OWNER}\0`), STAMP]), OWNER), STAMP);
});

test('damaged tags have no private frames, or others', (t) => {
  const random = seeded(7);
  const tag = id3Tag([{ id: 'PRIV', owner: OWNER, data: STAMP }]);
  for (let end = 0; end < tag.length; end++) t.is(id3Private(tag.subarray(0, end), OWNER), undefined);
  for (let n = 0; n < 5000; n++) {
    const bytes = Buffer.from(tag);
    for (let i = 0; i < 3; i++) bytes[Math.floor(random() * 30)] = Math.floor(random() * 256);
    t.notThrows(() => [id3Bytes(bytes), id3Private(bytes, OWNER)]);
  }
});
