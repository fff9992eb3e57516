import test from 'ava';
import { askedBySrt } from '../../../src/access/srt-request.ts';
import { readStreamId } from '../../../src/protocols/srt/stream-id.ts';

const asked = (streamId: string) => askedBySrt(readStreamId(streamId), streamId);

test('the name that an SRT caller requests is logged without its query, in whatever form it is written', (t) => {
  t.is(asked('default/app/talk/low?signature=secret'), 'default/app/talk/low');
  t.is(asked(encodeURIComponent('default/app/talk?signature=secret')), 'default/app/talk');
  t.is(asked('#!::m=request,r=app/talk?signature=secret,h=default'), 'default/app/talk');
});

test('an unreadable SRT stream id is logged as it came, without its query, and shortened when it is long', (t) => {
  t.is(asked('nothing?signature=secret'), 'nothing');
  t.is(asked('nothing%3Fsignature%3Dsecret'), 'nothing');
  t.is(asked('nothing%3fsignature'), 'nothing');
  t.is(asked('x'.repeat(400)).length, 300);
});
