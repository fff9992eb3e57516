import test from 'ava';
import type { ItemUnit } from '../../../../src/channels/scheduled/item-source.ts';
import { KeySearch } from '../../../../src/channels/scheduled/key-search.ts';
import { UnitQueue } from '../../../../src/channels/scheduled/unit-queue.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

const VIDEO = videoTrack({ id: 0 });
const AUDIO = audioTrack({ id: 100 });
const FRAME = Buffer.alloc(1024 * 1024);

/** Reads video of one frame of a megabyte, and some audio, each 40 ms. @returns the most that was held back */
function read(search: KeySearch, queue: UnitQueue, frames: number, isKey: (frame: number) => boolean): number {
  let most = 0;
  for (let frame = 0; frame < frames && !search.found; frame++) {
    const at = frame * 40;
    const times = { at, shownAt: at, dts: at * 90, pts: at * 90 };
    const picture: ItemUnit = { track: VIDEO, ...times, duration: 0, key: isKey(frame), data: FRAME };
    search.push(picture);
    search.push({
      ...picture,
      track: AUDIO,
      dts: at * 48,
      pts: at * 48,
      duration: 1920,
      key: true,
      data: Buffer.alloc(9),
    });
    most = Math.max(most, queue.bytes);
  }
  return most;
}

test('a file begins with the last key frame in front of the position', (t) => {
  const queue = new UnitQueue();
  const search = new KeySearch(queue, 2000, true);
  read(search, queue, 100, (frame) => frame % 20 === 0);
  t.true(search.found);
  t.is(queue.next?.shownAt, 1600);
});

test('a search for a key frame begins with the next one where too much would have to be held back', (t) => {
  const queue = new UnitQueue();
  const search = new KeySearch(queue, 4000, true);
  const most = read(search, queue, 300, (frame) => frame % 125 === 0);
  t.true(search.found);
  t.is(queue.next?.shownAt, 5000);
  t.true(queue.next?.key);
  t.true(most <= 33 * FRAME.length, `${most} bytes`);
});
