import { PassThrough } from 'node:stream';
import test from 'ava';
import { FrameError, FrameReader, writeFrame } from '../../../src/peers/peer-frames.ts';
import { Random } from '../../soak/random.ts';

const LIMITS = { head: 100, body: 1000 };
const NOTHING = Buffer.alloc(0);

function written(...frames: readonly [head: object, body?: readonly Buffer[]][]): Buffer {
  const stream = new PassThrough();
  for (const [head, body] of frames) writeFrame(stream, head, body);
  return (stream.read() as Buffer | null) ?? NOTHING;
}

function reader() {
  const frames: [unknown, string][] = [];
  return {
    frames,
    reader: new FrameReader(LIMITS, (head, body) => frames.push([JSON.parse(head.toString()), body.toString('hex')])),
  };
}

test('a frame is two lengths, JSON and bytes', (t) => {
  t.is(
    written([{ a: 1 }, [Buffer.from('0102', 'hex'), Buffer.from('03', 'hex')]]).toString('latin1'),
    '\0\0\0\x07\0\0\0\x03{"a":1}\x01\x02\x03',
  );
  t.is(written([{}]).toString('latin1'), '\0\0\0\x02\0\0\0\0{}');
});

test('frames are read as they were written, however they are cut', (t) => {
  const bytes = written([{ a: 1 }, [Buffer.from('0102', 'hex')]], [{}], [{ b: [] }, [Buffer.from('ff', 'hex')]]);
  const random = new Random(1);
  for (let round = 0; round < 200; round++) {
    const { frames, reader: into } = reader();
    for (let at = 0; at < bytes.length;) {
      const length = 1 + random.below(bytes.length);
      into.push(bytes.subarray(at, at + length));
      at += length;
    }
    t.deepEqual(frames, [
      [{ a: 1 }, '0102'],
      [{}, ''],
      [{ b: [] }, 'ff'],
    ]);
  }
});

test('the content of a peer frame is a copy: the chunk that it came in may be used again', (t) => {
  const bodies: Buffer[] = [];
  const into = new FrameReader(LIMITS, (_, body) => bodies.push(body));
  const bytes = Buffer.from(written([{}, [Buffer.from('0102', 'hex')]]));
  into.push(bytes);
  bytes.fill(0);
  t.deepEqual(bodies, [Buffer.from('0102', 'hex')]);
});

test('a peer frame beyond the limits is an error before it is held', (t) => {
  for (const lengths of ['0000006500000000', '00000002000003e9', 'ffffffffffffffff'])
    t.throws(() => reader().reader.push(Buffer.from(lengths, 'hex')), { instanceOf: FrameError });
  t.notThrows(() => reader().reader.push(Buffer.from('00000064000003e8', 'hex')));
});

test('random bytes are read or refused', (t) => {
  const random = new Random(2);
  let refused = 0;
  let read = 0;
  for (let round = 0; round < 500; round++) {
    const into = new FrameReader(LIMITS, () => read++);
    const bytes = Buffer.from(Array.from({ length: 40 }, () => (random.below(3) === 0 ? random.below(256) : 0)));
    try {
      into.push(bytes);
    } catch (error) {
      t.true(error instanceof FrameError);
      refused++;
    }
  }
  t.true(read > 0 && refused > 0, `${read} frames, ${refused} refusals`);
});
