import test from 'ava';
import { Blocks } from '../../../src/playback/blocks.ts';

const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));

function file(key = 'a') {
  const reads: string[] = [];
  const read = (start: number, end: number): Promise<Buffer> => {
    reads.push(`${start}-${end}`);
    return Promise.resolve(Buffer.from(BYTES.subarray(start, end)));
  };
  return { key, size: BYTES.length, read, reads };
}

test('blocks are read once, and give copies', async (t) => {
  const blocks = new Blocks(100, 4);
  const one = file();
  const bytes = await blocks.read(one, 150, 260);
  t.deepEqual(bytes, BYTES.subarray(150, 260));
  bytes.fill(0);
  t.deepEqual(await blocks.read(one, 190, 210), BYTES.subarray(190, 210));
  t.deepEqual(await blocks.read(one, 990, 1000), BYTES.subarray(990));
  t.is((await blocks.read(one, 5, 5)).length, 0);
  t.deepEqual(one.reads, ['100-200', '200-300', '900-1000', '0-100']);
  await blocks.read(file('b'), 0, 10);
  // the one that was used longest ago has left
  await blocks.read(one, 100, 101);
  t.deepEqual(one.reads.slice(4), ['100-200']);
  blocks.clear();
  await blocks.read(one, 100, 101);
  t.is(one.reads.length, 6);
});

test('a read that fails is tried again, and one that is left goes on for others', async (t) => {
  const blocks = new Blocks(100, 4);
  const { read } = file();
  let failures = 1;
  const flaky = {
    key: 'a',
    size: 1000,
    read: (start: number, end: number) => (failures-- > 0 ? Promise.reject(new Error('away')) : read(start, end)),
  };
  await t.throwsAsync(blocks.read(flaky, 0, 10), { message: 'away' });
  const leave = new AbortController();
  const left = blocks.read(flaky, 0, 10, leave.signal);
  const stays = blocks.read(flaky, 0, 10);
  leave.abort(new Error('left'));
  await t.throwsAsync(left, { message: 'left' });
  t.deepEqual(await stays, BYTES.subarray(0, 10));
});
