import test from 'ava';
import { findLoop, type ChannelNode } from '../../../src/channels/loops.ts';
import { readStreamUrl, type StreamUrl } from '../../../src/channels/sources/stream-url.ts';

const channel = (name: string, ...urls: string[]): ChannelNode => ({
  vhost: 'v',
  app: 'a',
  name,
  outputs: [name, `${name}_copy`],
  sources: urls.map((url, index) => ({ element: `${index}`, url: readStreamUrl(`stream://v/${url}`) as StreamUrl })),
});

const loop = (added: ChannelNode, ...others: readonly ChannelNode[]) =>
  findLoop(added, async (urls) => {
    const streams = new Set(urls.flatMap(({ app, stream }) => (app === 'a' ? stream : [])));
    return others.filter(({ outputs }) => outputs.some((output) => streams.has(output)));
  });

test('a channel may play what does not play it', async (t) => {
  const [left, right] = [channel('left', 'a/end'), channel('right', 'a/end')];
  t.is(
    await loop(channel('top', 'a/left', 'a/right_copy', 'b/top', 'a/publisher'), left, right, channel('end')),
    undefined,
  );
});

test('a loop is reported with the element that closes it and the channels in it', async (t) => {
  t.deepEqual(await loop(channel('x', 'a/y', 'a/x_copy')), { element: '1', chain: ['v/a/x', 'v/a/x'] });
  const others = [channel('b', 'a/none', 'a/c'), channel('c', 'a/b', 'a/x_copy'), channel('d', 'a/c')];
  t.deepEqual(await loop(channel('x', 'a/none', 'a/d'), ...others), {
    element: '1',
    chain: ['v/a/x', 'v/a/d', 'v/a/c', 'v/a/x'],
  });
});

test('loops of others are not entered twice, and its own earlier definition does not count', async (t) => {
  const others = [channel('b', 'a/c'), channel('c', 'a/b'), channel('x', 'a/x')];
  t.is(await loop(channel('x', 'a/b'), ...others), undefined);
});

test('thousands of channels that play each other are looked through at once', async (t) => {
  const many = Array.from({ length: 2000 }, (_, n) => channel(`c${n}`, `a/c${n + 1}`, `a/c${(n * 7) % 2000}`));
  t.is(await loop(channel('x', 'a/c0', 'a/c0'), ...many), undefined);
  const closed = await loop(channel('x', 'a/c1'), ...many, channel('c2000', 'a/x'));
  t.deepEqual(closed?.chain.slice(-2), ['v/a/c2000', 'v/a/x']);
});

test('each differing file of one channel counts for loops', async (t) => {
  const differing = [channel('b', 'a/none'), channel('b', 'a/x')];
  t.deepEqual(await loop(channel('x', 'a/b'), ...differing), { element: '0', chain: ['v/a/x', 'v/a/b', 'v/a/x'] });
});
