import test from 'ava';
import type { Media } from '../../../../../src/publishers/hls/answer/played-stream.ts';
import { MediaCache } from '../../../../../src/publishers/hls/answer/media-cache.ts';

const media = (bytes: number): Media => ({ kind: 'part', type: 'video', body: [Buffer.alloc(bytes)] });

test('the least recently used entry is removed when there are too many bytes', (t) => {
  const cache = new MediaCache(100);
  const stream = {};
  cache.put(stream, 'a', media(40));
  cache.put(stream, 'b', media(40));
  t.truthy(cache.get(stream, 'a'));
  cache.put(stream, 'c', media(40));
  t.is(cache.get(stream, 'b'), undefined);
  t.truthy(cache.get(stream, 'a'));
  t.truthy(cache.get(stream, 'c'));
  t.is(cache.bytes, 80);
  cache.put(stream, 'huge', media(101));
  t.is(cache.get(stream, 'huge'), undefined);
  t.is(cache.bytes, 80, 'and nothing made room for it');
  for (let index = 0; index < 1000; index++) {
    cache.put({}, `${index}`, media(index % 90));
    t.true(cache.bytes <= 100);
  }
});

test('a name that is put again counts once; one stream does not see the files of another', (t) => {
  const cache = new MediaCache(100);
  const [one, other] = [{}, {}];
  cache.put(one, 'a', media(10));
  cache.put(one, 'a', media(20));
  t.is(cache.bytes, 20);
  t.is(cache.get(one, 'a')?.body[0]?.length, 20);
  t.is(cache.get(other, 'a'), undefined);
});

test('a stream that is dropped takes its files with it, and only its own', (t) => {
  const cache = new MediaCache(100);
  const [one, other] = [{}, {}];
  for (const name of ['a', 'b']) cache.put(one, name, media(10));
  cache.put(other, 'a', media(10));
  cache.drop(one);
  t.is(cache.bytes, 10);
  t.is(cache.get(one, 'a'), undefined);
  t.truthy(cache.get(other, 'a'));
});

test('an entry that was not used for a while is removed', async (t) => {
  const cache = new MediaCache(100);
  const stream = {};
  cache.put(stream, 'old', media(10));
  cache.put(stream, 'used', media(10));
  const between = performance.now() + 0.5;
  while (performance.now() <= between) await new Promise((resolve) => setImmediate(resolve));
  cache.get(stream, 'used');
  cache.expire(between);
  t.is(cache.get(stream, 'old'), undefined);
  t.truthy(cache.get(stream, 'used'));
  t.is(cache.bytes, 10);
});
