import test from 'ava';
import { shownUrl } from '../../../../src/providers/pull/error.ts';

test('what is shown of a URL has no secrets', (t) => {
  t.is(shownUrl('rtsp://user:pass@cam:554/live?token=1#x'), 'rtsp://cam:554/live');
  t.is(shownUrl('rtsp://user:p@ss@cam/live@home'), 'rtsp://cam/live@home');
  t.is(shownUrl('ovt://host:9000/app/talk'), 'ovt://host:9000/app/talk');
  t.is(shownUrl('rtsp://user:pass@'), 'rtsp://');
});
