import test from 'ava';
import { HeldMedia, type HeldQueue } from '../../../../src/providers/srt/held-media.ts';

/** What a queue gives out. */
function released(queue: HeldQueue): (string | number)[] {
  const got: (string | number)[] = [];
  queue.release({ data: (bytes) => void got.push(bytes.toString()), lost: (messages) => void got.push(messages) });
  return got;
}

test('held SRT media is returned in order, and is a copy', (t) => {
  const held = new HeldMedia({ each: 10_000, all: 10_000 });
  const queue = held.open();
  const shared = Buffer.from('one');
  queue.data(shared);
  shared.write('xxx');
  queue.lost(3);
  queue.data(Buffer.from('two'));
  t.true(held.bytes > 0);
  t.deepEqual(released(queue), ['one', 3, 'two']);
  t.is(held.bytes, 0);
  t.false(queue.dropped);
  t.deepEqual(released(queue), []);
});

test('media of a sender of too much is dropped so far, and that of others is not', (t) => {
  const held = new HeldMedia({ each: 2000, all: 100_000 });
  const [loud, other] = [held.open(), held.open()];
  other.data(Buffer.from('kept'));
  for (let n = 0; n < 1000; n++) {
    loud.data(Buffer.alloc(500));
    t.true(loud.bytes <= 2000);
  }
  t.true(loud.dropped);
  t.false(other.dropped);
  t.deepEqual(released(other), ['kept']);
});

test('pieces without content have a limit, too', (t) => {
  const held = new HeldMedia({ each: 2000, all: 100_000 });
  const queue = held.open();
  for (let n = 0; n < 100; n++) queue.lost(1);
  t.true(queue.dropped);
  t.true(released(queue).length < 10);
});

test('the sender of which most is held pays when all of them send too much', (t) => {
  const held = new HeldMedia({ each: 10_000, all: 10_000 });
  const quiet = held.open();
  quiet.data(Buffer.from('kept'));
  const loud = Array.from({ length: 20 }, () => held.open());
  for (let n = 0; n < 10; n++) {
    for (const queue of loud) {
      queue.data(Buffer.alloc(1000));
      t.true(held.bytes <= 10_000);
    }
  }
  t.false(quiet.dropped);
  t.true(loud.every(({ dropped }) => dropped));
  for (const queue of loud) queue.close();
  t.deepEqual(released(quiet), ['kept']);
  t.is(held.bytes, 0);
});
