import test from 'ava';
import {
  handedOn,
  parseDirectives,
  withoutDirectives,
} from '../../../../../src/publishers/hls/blocking-reload/directives.ts';

const NONE = { msn: undefined, part: undefined, skip: false, legacy: false, rewinds: true };

test('delivery directives, in any order and beside others', (t) => {
  t.deepEqual(parseDirectives(''), NONE);
  t.deepEqual(parseDirectives('a=1&b'), NONE);
  t.deepEqual(parseDirectives('_HLS_msn=7'), { ...NONE, msn: 7 });
  t.deepEqual(parseDirectives('_HLS_msn=7&_HLS_part=2&_HLS_skip=YES'), { ...NONE, msn: 7, part: 2, skip: true });
  t.deepEqual(parseDirectives('x=1&_HLS_skip=v2&_HLS_part=2&_HLS_msn=7'), { ...NONE, msn: 7, part: 2, skip: true });
  t.deepEqual(parseDirectives('_HLS_legacy=YES'), { ...NONE, legacy: true });
});

test('the past is left out on request', (t) => {
  t.deepEqual(parseDirectives('_HLS_rewind=NO'), { ...NONE, rewinds: false });
  t.deepEqual(parseDirectives('_HLS_rewind=NO&_HLS_msn=7'), { ...NONE, rewinds: false, msn: 7 });
  t.deepEqual(parseDirectives('_HLS_rewind=YES&_HLS_legacy=YES'), { ...NONE, legacy: true });
  t.deepEqual(withoutDirectives('_HLS_rewind=NO&_HLS_msn=x'), { ...NONE, rewinds: false });
  t.deepEqual(withoutDirectives('_HLS_rewind=YES'), NONE);
  t.deepEqual(withoutDirectives('_HLS_msn=7'), NONE);
});

test('malformed directives are refused', (t) => {
  for (const query of ['_HLS_msn=', '_HLS_msn=-1', '_HLS_msn=1.5', `_HLS_msn=${'9'.repeat(16)}`, '_HLS_part=1'])
    t.throws(() => parseDirectives(query), { code: 'playlistDirective' }, query);
});

test('the children of a master playlist keep all but the directives for one state', (t) => {
  t.is(handedOn('_HLS_rewind=NO&_HLS_msn=7&_HLS_part=0&_HLS_skip=YES&x=1'), '_HLS_rewind=NO&x=1');
});
