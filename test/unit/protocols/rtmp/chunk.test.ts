import test from 'ava';
import { ChunkReader, type ChunkLimits } from '../../../../src/protocols/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';
import { encodeNumber, type RtmpMessage } from '../../../../src/protocols/rtmp/message.ts';

const LIMITS: ChunkLimits = { messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 8 };
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

function read(pieces: Iterable<Buffer>, limits = LIMITS): RtmpMessage[] {
  const messages: RtmpMessage[] = [];
  const reader = new ChunkReader(limits, (message) => messages.push(message));
  for (const piece of pieces) reader.push(piece);
  return messages;
}

function pattern(length: number, seed = 0): Buffer {
  return Buffer.from(Array.from({ length }, (_, i) => (i * 7 + seed) & 0xff));
}

test('a message of one chunk, both ways', (t) => {
  const bytes = hex('06 0003e8 000003 09 01000000 aabbcc');
  t.deepEqual(read([bytes]), [{ type: 9, streamId: 1, timestamp: 1000, payload: hex('aabbcc') }]);
  t.deepEqual(Buffer.concat(new ChunkWriter().message(6, 9, 1, 1000, hex('aabbcc'))), bytes);
});

test('a message of several chunks, both ways', (t) => {
  const payload = pattern(300);
  const bytes = Buffer.concat([
    hex('04 000010 00012c 08 01000000'),
    payload.subarray(0, 128),
    hex('c4'),
    payload.subarray(128, 256),
    hex('c4'),
    payload.subarray(256),
  ]);
  t.deepEqual(read([bytes]), [{ type: 8, streamId: 1, timestamp: 16, payload }]);
  t.deepEqual(Buffer.concat(new ChunkWriter().message(4, 8, 1, 16, payload)), bytes);
});

test('headers of all four types', (t) => {
  const bytes = Buffer.concat([
    hex('04 000064 000001 08 01000000 01'),
    hex('44 000014 000002 09 0202'),
    hex('84 00000a 0303'),
    hex('c4 0404'),
  ]);
  t.deepEqual(
    read([bytes]).map(({ timestamp, type, payload }) => [timestamp, type, payload.toString('hex')]),
    [
      [100, 8, '01'],
      [120, 9, '0202'],
      [130, 9, '0303'],
      [140, 9, '0404'],
    ],
  );
});

test('a bare header after a full one steps by its time when that can be a step', (t) => {
  const ffmpeg = [hex('04 000014 000001 08 01000000 01'), hex('c4 02')];
  t.deepEqual(
    read(ffmpeg).map(({ timestamp }) => timestamp),
    [20, 40],
  );
  const librtmp = [hex('04 00ffff 000001 08 01000000 01'), hex('c4 02')];
  t.deepEqual(
    read(librtmp).map(({ timestamp }) => timestamp),
    [0xffff, 0xffff],
  );
});

test('chunk stream ids of two and three bytes', (t) => {
  const two = hex('00 0a 000001 000001 08 01000000 01 c0 0a 02');
  const three = hex('01 0a01 000001 000001 08 01000000 01 c1 0a01 02');
  for (const bytes of [two, three]) {
    for (const pieces of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
      t.deepEqual(
        read(pieces).map(({ payload }) => payload.toString('hex')),
        ['01', '02'],
      );
    }
  }
});

test('extended timestamps, repeated on the chunks that follow, both ways', (t) => {
  const payload = pattern(200);
  const bytes = Buffer.concat([
    hex('04 ffffff 0000c8 08 01000000 01000000'),
    payload.subarray(0, 128),
    hex('c4 01000000'),
    payload.subarray(128),
  ]);
  t.deepEqual(read([bytes]), [{ type: 8, streamId: 1, timestamp: 0x1000000, payload }]);
  t.deepEqual(read([...bytes].map((byte) => Buffer.of(byte))), read([bytes]));
  t.deepEqual(Buffer.concat(new ChunkWriter().message(4, 8, 1, 0x1000000, payload)), bytes);
});

test('extended timestamps that the encoder leaves out of the chunks that follow', (t) => {
  const payload = pattern(300);
  const next = hex('04 ffffff 000082 08 01000000 01000028');
  const second = pattern(130, 9);
  const bytes = Buffer.concat([
    hex('04 ffffff 00012c 08 01000000 01000000'),
    payload.subarray(0, 128),
    hex('c4'),
    payload.subarray(128, 256),
    hex('c4'),
    payload.subarray(256),
    next,
    second.subarray(0, 128),
    hex('c4'),
    second.subarray(128),
  ]);
  for (const pieces of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
    const messages = read(pieces);
    t.deepEqual(
      messages.map(({ payload: body }) => body),
      [payload, second],
    );
    t.deepEqual(
      messages.map(({ timestamp }) => timestamp),
      [0x1000000, 0x1000028],
    );
  }
});

test('an extended timestamp step is read', (t) => {
  const bytes = hex('04 000001 000001 08 01000000 01 44 ffffff 000001 08 01000000 02');
  t.deepEqual(
    read([bytes]).map(({ timestamp }) => timestamp),
    [1, 0x1000001],
  );
});

test('RTMP times wrap at 32 bits', (t) => {
  const bytes = hex('04 ffffff 000001 08 01000000 fffffff0 01 84 000020 02');
  t.deepEqual(
    read([bytes]).map(({ timestamp }) => timestamp),
    [0xfffffff0, 0x10],
  );
});

test('chunks of two streams take turns', (t) => {
  const [video, audio] = [pattern(200), pattern(150, 3)];
  const bytes = Buffer.concat([
    hex('06 000001 0000c8 09 01000000'),
    video.subarray(0, 128),
    hex('04 000001 000096 08 01000000'),
    audio.subarray(0, 128),
    hex('c6'),
    video.subarray(128),
    hex('c4'),
    audio.subarray(128),
  ]);
  t.deepEqual(
    read([bytes]).map(({ payload }) => payload),
    [video, audio],
  );
});

test('RTMP chunks of any size are read, whatever the pieces', (t) => {
  const messages = [pattern(5), pattern(1000, 1), pattern(70_000, 2), Buffer.alloc(0), pattern(128, 3)];
  for (const size of [1, 2, 127, 128, 129, 4096, 65_536, 0xffffff]) {
    const writer = new ChunkWriter();
    const bytes = Buffer.concat([
      ...writer.setChunkSize(size),
      ...messages.flatMap((payload, i) => writer.message(6, 9, 1, i * 40, payload)),
    ]);
    for (const piece of [1, 3, 100, 1460, 65_536, bytes.length]) {
      const pieces: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += piece) pieces.push(bytes.subarray(at, at + piece));
      t.deepEqual(
        read(pieces).map(({ payload }) => payload),
        messages,
        `chunks of ${size}, pieces of ${piece}`,
      );
    }
  }
});

test('messages stay as they came when their piece is read into again', (t) => {
  const bytes = Buffer.concat([
    hex('06 000000 000064 09 01000000'),
    pattern(100),
    hex('04 000000 000003 08 01000000 aabbcc'),
  ]);
  const [large, small] = read([bytes]);
  bytes.fill(0);
  t.deepEqual(large?.payload, pattern(100));
  t.deepEqual(small?.payload, hex('aabbcc'));
});

test('an abort drops what came of a message', (t) => {
  const bytes = Buffer.concat([
    hex('06 000000 0000c8 09 01000000'),
    pattern(128),
    ...new ChunkWriter().message(2, 2, 0, 0, encodeNumber(6)),
    hex('06 000000 000001 09 01000000 ff'),
  ]);
  t.deepEqual(
    read([bytes]).map(({ payload }) => payload.toString('hex')),
    ['ff'],
  );
});

test('the work is linear in the bytes, one by one', (t) => {
  const payload = pattern(200_000);
  const writer = new ChunkWriter();
  const bytes = Buffer.concat([...writer.setChunkSize(0xffffff), ...writer.message(6, 9, 1, 0, payload)]);
  let copied = 0;
  const original = Buffer.prototype.copy;
  const messages: RtmpMessage[] = [];
  const reader = new ChunkReader(LIMITS, (message) => messages.push(message));
  Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<typeof original>) {
    const count = original.apply(this, args);
    copied += count;
    return count;
  };
  try {
    for (const byte of bytes) reader.push(Buffer.of(byte));
  } finally {
    Buffer.prototype.copy = original;
  }
  t.deepEqual(messages[0]?.payload, payload);
  t.true(copied <= bytes.length, `${copied} bytes were copied for ${bytes.length}`);
});

const REFUSED: readonly (readonly [string, Buffer, RegExp])[] = [
  ['a message that is too long', hex('06 000000 100001 09 01000000'), /message of 1048577 bytes/],
  ['a chunk stream that begins without a header', hex('c6'), /begins without/],
  ['a chunk stream that begins with a step alone', hex('86 000001'), /begins without/],
  ['a chunk size of zero', hex('02 000000 000004 01 00000000 00000000'), /chunk size 0/],
  ['a chunk size that is cut off', hex('02 000000 000002 01 00000000 0000'), /cut off/],
  [
    'a message in the middle of another',
    Buffer.concat([hex('06 000000 0000c8 09 01000000'), pattern(128), hex('06 000000 000001 09 01000000 ff')]),
    /before the last/,
  ],
  [
    'too many chunk streams',
    Buffer.concat(Array.from({ length: 9 }, (_, i) => hex(`0${(i + 3).toString(16)} 000000 000001 08 01000000 01`))),
    /more than 8 chunk streams/,
  ],
  [
    'too much that is unfinished',
    Buffer.concat([3, 4, 5].map((id) => Buffer.concat([hex(`0${id} 000000 080000 09 01000000`), pattern(128)]))),
    /unfinished/,
  ],
];

for (const [name, bytes, message] of REFUSED) {
  test(`refuse chunks: ${name}`, (t) => {
    t.throws(() => read([bytes]), { instanceOf: RtmpError, message });
  });
}

test('the largest chunk size of the protocol is taken', (t) => {
  const bytes = Buffer.concat([
    hex('02 000000 000004 01 00000000 7fffffff'),
    hex('06 000000 000200 09 01000000'),
    pattern(512),
  ]);
  t.is(read([bytes])[0]?.payload.length, 512);
});
