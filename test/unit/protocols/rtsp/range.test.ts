import test from 'ava';
import { readDescription } from '../../../../src/protocols/rtsp/description.ts';
import { playRanges } from '../../../../src/protocols/rtsp/range.ts';

test('a stream is asked for where it is, and from a place only where that is refused', (t) => {
  const none = undefined;
  for (const [told, ...expected] of [
    [none, 'npt=0.000-', none],
    ['', 'npt=0.000-', none],
    ['npt=now-', 'npt=now-', none, 'npt=0.000-'],
    [' npt = now-30 ', 'npt=now-', none, 'npt=0.000-'],
    ['npt=0-', none, 'npt=0.000-'],
    ['npt=0-34.4368', none, 'npt=0.000-'],
    ['clock=19961108T142300Z-19961108T143520Z', none, 'clock=19961108T142300Z-19961108T143520Z', 'npt=0.000-'],
    ['smpte-30-drop=10:07:00-10:07:33:05.01', none, 'smpte-30-drop=10:07:00-10:07:33:05.01', 'npt=0.000-'],
    ['clock=1;X', none, 'npt=0.000-'],
    [`clock=${'1'.repeat(200)}`, none, 'npt=0.000-'],
    ['nonsense', none, 'npt=0.000-'],
  ] as const)
    t.deepEqual(playRanges(told), expected, told);
});

test('the range of a description is that of the whole, or of a track', (t) => {
  const track = ['m=audio 0 RTP/AVP 0', 'a=range:npt=0-5'];
  const read = (...lines: readonly string[]) => readDescription(['v=0', ...lines, ''].join('\r\n')).range;
  t.is(read('a=range:npt=now-', ...track), 'npt=now-');
  t.is(read(...track), 'npt=0-5');
  t.is(read('m=audio 0 RTP/AVP 0'), undefined);
});
