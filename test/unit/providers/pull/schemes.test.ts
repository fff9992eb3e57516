import test from 'ava';
import { bySchemes } from '../../../../src/providers/pull/schemes.ts';
import type { PullSource, SourceOptions } from '../../../../src/providers/pull/source.ts';

test('a URL is pulled by its scheme, and other schemes are rejected before any work', async (t) => {
  const asked: string[] = [];
  const source = { connection: undefined } as PullSource;
  const pulls = async (url: string): Promise<PullSource> => {
    asked.push(url);
    return source;
  };
  const open = bySchemes({
    ovt: pulls,
    rtsp: pulls,
    rtspc: pulls,
    rtmp: pulls,
    rtmps: pulls,
    srt: pulls,
    http: pulls,
    https: pulls,
    whep: pulls,
    wheps: pulls,
    udp: pulls,
  });
  const options = {} as SourceOptions;
  t.is(await open('ovt://a/b/c', options), source);
  t.is(await open('OVT://a/b/c', options), source);
  for (const url of ['ftp://a/b?key=secret', 'file:///etc/passwd', 'constructor://x', '//a/b', '', 'ovt']) {
    const error = await t.throwsAsync(
      open(url, options),
      {
        name: 'PullError',
        message:
          /^streams are pulled over ovt, rtsp, rtspc, rtmp, rtmps, srt, http, https, whep, wheps, udp, not over /,
      },
      url,
    );
    t.notRegex(error.message, /secret/);
  }
  t.deepEqual(asked, ['ovt://a/b/c', 'OVT://a/b/c']);
});
