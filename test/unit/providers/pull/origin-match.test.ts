import test from 'ava';
import { VirtualHost } from '../../../../src/config/elements/vhost.ts';
import type { VirtualHostConfig } from '../../../../src/config/model.ts';
import { readConfig } from '../../../../src/config/read.ts';
import { matchOrigin, storeOrder } from '../../../../src/providers/pull/origin-match.ts';

function origins(...origin: object[]): VirtualHostConfig['origins'] {
  const properties = { retryCount: 2, streamFailbackTimeout: 500 };
  const reading = readConfig(VirtualHost, { name: 'v', host: { names: ['*'] }, origins: { properties, origin } });
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  return (reading.config as VirtualHostConfig).origins;
}

const pass = (...url: string[]) => ({ scheme: 'ovt', urls: { url } });
const at = (location: string, url: string, more: object = {}) => ({ location, pass: pass(url), ...more });
const urlsOf = (config: VirtualHostConfig['origins'], path: string, query = '') => {
  const [app = '', stream = ''] = path.split('/');
  return matchOrigin(config, app, stream, new URLSearchParams(query))?.spec.urls;
};

test('the rest of the path is put behind the URL', (t) => {
  const config = origins(
    at('/edge_app/', 'origin.com:9000/origin_app/'),
    at('/edge_app/exact', 'origin.com:9000/app/other'),
  );
  t.deepEqual(urlsOf(config, 'edge_app/stream'), ['ovt://origin.com:9000/origin_app/stream']);
  t.deepEqual(urlsOf(config, 'edge_app/exact'), ['ovt://origin.com:9000/app/other'], 'the longest prefix wins');
  t.deepEqual(urlsOf(config, 'edge_app/a b/ä'), ['ovt://origin.com:9000/origin_app/a%20b']);
  t.is(urlsOf(config, 'app/stream'), undefined);
  t.is(urlsOf(undefined, 'app/stream'), undefined);
});

test('an exact location is tried first, and takes nothing longer', (t) => {
  const config = origins(
    at('/app/', 'long/'),
    at('/app/s', 'longer'),
    at('/app/s', 'strict', { strictLocation: true }),
    at('/app/s', 'second', { strictLocation: true }),
  );
  t.deepEqual(urlsOf(config, 'app/s'), ['ovt://strict']);
  t.deepEqual(urlsOf(config, 'app/st'), ['ovt://longert']);
  t.deepEqual(urlsOf(config, 'app/x'), ['ovt://long/x']);
});

test('queries: the URL has its own, the viewer has one, both, or only the first', (t) => {
  const forward = origins(at('/a/', 'h/b/?token=1'));
  t.deepEqual(urlsOf(forward, 'a/s'), ['ovt://h/b/s?token=1']);
  t.deepEqual(urlsOf(forward, 'a/s', 'x=1&y=2'), ['ovt://h/b/s?token=1&x=1&y=2']);
  t.deepEqual(urlsOf(origins(at('/a/', 'h/b/')), 'a/s', 'x=1'), ['ovt://h/b/s?x=1']);
  const kept = origins({ location: '/a/', pass: { ...pass('h/b/'), forwardQueryParams: false } });
  t.deepEqual(urlsOf(kept, 'a/s', 'x=1'), ['ovt://h/b/s']);
});

test('the rest of the path ends the stream id of an SRT URL, which gets no query of a viewer', (t) => {
  const srt = origins({ location: '/a/', pass: { ...pass('h:9999?latency=300&streamid=read:'), scheme: 'srt' } });
  t.deepEqual(urlsOf(srt, 'a/s', 'passphrase=chosen-by-viewers'), ['srt://h:9999?latency=300&streamid=read:s']);
});

test('an origin is matched to the URLs and properties that a stream is pulled with', (t) => {
  const config = origins({ location: '/a/', pass: pass('one/', 'two/'), failback: true, persistent: true });
  t.deepEqual(matchOrigin(config, 'a', 's', new URLSearchParams()), {
    persistent: true,
    spec: {
      urls: ['ovt://one/s', 'ovt://two/s'],
      relay: true,
      noInputFailoverMs: 3000,
      unusedMs: 60_000,
      retryCount: 2,
      failbackMs: 500,
      isFromStore: false,
      ignoresReports: false,
    },
  });
  const camera = origins(at('/a/', 'cam/', { ignoreRtcpSRTimestamp: true, pass: { ...pass('cam/'), scheme: 'rtsp' } }));
  t.like(matchOrigin(camera, 'a', 's', new URLSearchParams())?.spec, { urls: ['rtsp://cam/s'], ignoresReports: true });
  t.is(matchOrigin(origins(at('/a/', 'x/', { relay: false })), 'a', 's', new URLSearchParams())?.spec.relay, false);
  t.like(storeOrder(config, 'ovt://h/a/s'), {
    persistent: false,
    spec: { urls: ['ovt://h/a/s'], isFromStore: true, relay: true, retryCount: 2 },
  });
  t.like(storeOrder(undefined, 'ovt://h/a/s').spec, { noInputFailoverMs: 3000, unusedMs: 60_000, retryCount: 0 });
});
