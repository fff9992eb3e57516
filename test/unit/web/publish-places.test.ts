import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { frameAncestors } from '../../../src/web/embedding.ts';
import { publishPlaces } from '../../../src/web/publish-places.ts';
import { addVhost, type VhostShape } from '../../support/server/live.ts';

const PORTS = { rtmp: { port: 1935, tlsPort: 1936 }, srt: 9999, whip: { port: 3333 } };
const CLIENT = { address: '192.0.2.1', port: 1, realAddress: '192.0.2.1', localPort: 3333 };
const PROVIDERS = { rtmp: {}, srt: {}, webrtc: {} } as never;

function placesOf(shape: VhostShape, ports: object = PORTS) {
  const registry = new Registry();
  addVhost(registry, { providers: PROVIDERS, ...shape });
  return publishPlaces(registry.vhost('default'), 'live.example', ports, CLIENT);
}

test('addresses name what this server listens on, and ports where they are not the usual ones', (t) => {
  t.deepEqual(placesOf({ applications: ['a b'] }), {
    restricted: false,
    applications: [
      {
        app: 'a b',
        rtmp: ['rtmp://live.example/a%20b', 'rtmps://live.example:1936/a%20b'],
        srt: 'srt://live.example:9999?streamid=default/a%20b',
        whip: 'http://live.example:3333/a%20b',
      },
    ],
  });
  t.deepEqual(placesOf({}, { rtmp: { port: 1935 } }).applications, [{ app: 'app', rtmp: ['rtmp://live.example/app'] }]);
  t.deepEqual(placesOf({ providers: {} }).applications, []);
});

test('applications behind access control are not shown, nor any where viewers are guarded', (t) => {
  const policy = (enables: object): never => ({ enables }) as never;
  const guarded = placesOf({ signedPolicy: policy({ providers: 'rtmp,srt' }) });
  t.deepEqual(guarded, {
    restricted: true,
    applications: [{ app: 'app', rtmp: [], whip: 'http://live.example:3333/app' }],
  });
  t.deepEqual(placesOf({ signedPolicy: policy({ publishers: 'llhls' }) }), { restricted: true, applications: [] });
});

test('an application that rejects the network of the client is not shown', (t) => {
  const limits = { deny: '192.0.2.0/24', connectionsPerMinute: 0, publishesPerMinute: 0 };
  t.deepEqual(placesOf({ limits }), { restricted: false, applications: [] });
});

test('frames are for the sites that may play the streams', (t) => {
  const allow = (...url: string[]) => frameAncestors({ url, header: [] });
  t.is(frameAncestors(undefined), "'self'");
  t.is(allow('*'), '*');
  t.is(allow('https://a.example:444'), "'self' https://a.example:444");
  t.is(allow('*.b.example'), "'self' http://*.b.example https://*.b.example");
  t.is(allow('null', 'a?.example', "x; script-src 'unsafe-inline'"), "'self'");
});
