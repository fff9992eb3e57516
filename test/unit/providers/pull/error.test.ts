import test from 'ava';
import { shownReason, shownUrl } from '../../../../src/protocols/outbound/shown.ts';
import { PullError } from '../../../../src/providers/pull/error.ts';

test('a URL is shown without secrets', (t) => {
  t.is(shownUrl('rtsp://user:pass@cam:554/live?token=1#x'), 'rtsp://cam:554/live');
  t.is(shownUrl('rtsp://user:p@ss@cam/live@home'), 'rtsp://cam/live@home');
  t.is(shownUrl('ovt://host:9000/app/talk'), 'ovt://host:9000/app/talk');
  t.is(shownUrl('rtsp://user:pass@'), 'rtsp://');
  t.is(shownUrl('rtsp://[2001:db8::1]:554/live'), 'rtsp://[2001:db8::1]:554/live');
  t.is(shownUrl('rtsp:///x'), 'rtsp:///x');
  t.is(shownUrl('camera'), 'camera');
  t.is(shownUrl('user:pass@cam/live'), 'cam/live');
  // with what is to be escaped in a password, and ends the authority of the URL
  t.is(shownUrl('rtsp://admin:12#34@cam/live'), 'rtsp://...');
  for (const mark of ['/', '?', '#']) t.is(shownUrl(`rtsp://admin:se${mark}cret@cam/live`), 'rtsp://...', mark);
});

test('a reason is one line without secrets, whatever an origin says', (t) => {
  const said =
    'the origin refused (404): no ovt://u:p@host:9000/a/b?token=1, nor (rtsp://u:p@cam/x#y)\u0000\r\n\u202eFake: line';
  t.is(shownReason(said), 'the origin refused (404): no ovt://host:9000/a/b nor (rtsp://cam/x) Fake: line');
  t.is(shownReason('x'.repeat(10_000)).length, 500);
  for (const mark of [`'`, '"', '(', ')', '<', '>'])
    t.is(shownReason(`no (ovt://u:se${mark}cret@host:9000/a?token=1) here`), 'no (ovt://host:9000/a) here', mark);
  // as long as a message over OVT may be
  t.is(shownReason('x'.repeat(4_000_000)).length, 500);
  t.is(new PullError(said).message, shownReason(said));
});
