import test from 'ava';
import { isDueSoon, type Position } from '../../../../../src/publishers/hls/blocking-reload/chunklist-position.ts';
import { waitMs } from '../../../../../src/publishers/hls/blocking-reload/wait.ts';

/** After this long hls.js 1.7 gives up a request, after the pause it tries one again that was refused. */
const HLSJS_GIVES_UP_MS = 10_000;
const HLSJS_PAUSE_MS = 1000;

test('a video without media is overdue before its other renditions, early enough for hls.js to load it anew', (t) => {
  for (let targetDuration = 1; targetDuration <= 20; targetDuration++) {
    const video = waitMs(targetDuration, false, 'soon');
    const others = Math.min(waitMs(targetDuration, false, 'next'), HLSJS_GIVES_UP_MS);
    t.true(video + HLSJS_PAUSE_MS < others, `${video} and ${others} ms of ${targetDuration} s`);
    t.true(waitMs(targetDuration, false, 'next') >= 3000 * targetDuration, 'as RFC 8216bis 6.2.5.2 has it');
  }
});

test('only the very next part, of parts that are short, is due soon', (t) => {
  const growing: Position = { newest: { msn: 6, parts: 4 }, open: { msn: 7, parts: 2 }, partTarget: 0.5 };
  t.true(isDueSoon(growing, 7, 2));
  t.true(isDueSoon(growing, 8, 0), 'if the segment ends');
  t.false(isDueSoon(growing, 7, 3));
  t.false(isDueSoon(growing, 8, 1));
  t.false(isDueSoon(growing, 7, undefined), 'a whole segment takes its time');
  t.false(isDueSoon({ ...growing, partTarget: 6 }, 7, 2));
  const complete: Position = { newest: { msn: 6, parts: 4 }, partTarget: 0.5 };
  t.true(isDueSoon(complete, 7, 0));
  t.true(isDueSoon(complete, 6, 4), 'the first one of the next segment');
  t.false(isDueSoon(complete, 7, 1));
});
