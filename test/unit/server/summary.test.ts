import test from 'ava';
import { loadConfig } from '../../../src/config/load.ts';
import type { Addresses } from '../../../src/server/addresses.ts';
import { clientAddresses, summary, wantsColor } from '../../../src/server/summary.ts';

const { config } = await loadConfig('config/Server.xml', { env: {} });

const EVERYTHING: Addresses = {
  rtmp: { port: 1935 },
  llhls: { port: 3333 },
  webrtc: { port: 3333, tlsPort: 3334 },
  whip: { port: 3333 },
  ice: ['10000/udp', '10000/tcp'],
  api: { port: 8081 },
};

test('the start summary says where to watch, where to publish and where the API is', (t) => {
  t.is(
    summary(config, EVERYTHING, { version: '0.1.0', token: 'kiln:secret', color: false }),
    `
  Kiln 0.1.0

    Watch
      Page     http://localhost:3333/app/mystream  (http://localhost:3333/ lists what is live)
      LL-HLS   http://localhost:3333/app/mystream/llhls.m3u8
      WebRTC   http://localhost:3333/app/mystream?direction=whep  (WHEP)
               ws://localhost:3333/app/mystream  (OvenPlayer)
               media on 10000/udp, 10000/tcp
      TLS      https://localhost:3334  (the same, encrypted)

    Publish
      RTMP     rtmp://localhost/app/mystream
      OBS      Service: Custom, Server: rtmp://localhost/app, Stream Key: mystream
               for the least delay: keyframe interval 1 s, tune zerolatency, no B-frames
      WHIP     http://localhost:3333/app/mystream?direction=whip

    Manage
      Console  http://localhost:8081/console
      API      http://localhost:8081/v1
      Token    kiln:secret  (generated for this run: set KILN_ACCESS_TOKEN to keep one)
               curl -u kiln:secret http://localhost:8081/v1/vhosts
`,
  );
});

test('the start summary names the page to open first with the built-in publisher, and it is the one with both ways to play', (t) => {
  const text = summary(config, EVERYTHING, { version: '0.1.0', demo: { app: 'app', stream: 'demo' }, color: false });
  t.regex(text, /Kiln 0\.1\.0\n\n {4}Open  http:\/\/localhost:3333\/app\/demo\?mode=both\n/);
  t.regex(text, /LL-HLS {2,}http:\/\/localhost:3333\/app\/demo\/llhls\.m3u8/);
  t.regex(text, /rtmp:\/\/localhost\/app\/mystream/);
});

test('the start summary has nothing that does not listen, and no token that was configured', (t) => {
  const text = summary(config, { ice: [], webrtc: { tlsPort: 443 } }, { version: '1', color: false });
  t.notRegex(text, /LL-HLS|RTMP|Publish|Manage|Token|media on/);
  t.regex(text, /https:\/\/localhost\/app\/mystream\?direction=whep/);
  t.regex(text, /wss:\/\/localhost\/app\/mystream/);
  t.regex(summary(config, { ice: [] }, { version: '1', color: false }), /No port is open/);
});

test('the start summary has SRT with a stream id that names the virtual host', (t) => {
  const addresses: Addresses = { ice: [], srt: [{ first: 9999, last: 9999 }], srtPlay: [{ first: 9998, last: 9998 }] };
  const text = summary(config, addresses, { version: '1', color: false });
  t.regex(text, /Watch\n {6}SRT {2}srt:\/\/localhost:9998\?streamid=default\/app\/mystream\n/);
  t.regex(text, /Publish\n {6}SRT {2}srt:\/\/localhost:9999\?streamid=default\/app\/mystream\n/);
  t.deepEqual(clientAddresses(config, addresses), { srt: ['srt://localhost:9999'], srtPlay: ['srt://localhost:9998'] });
});

test('the start summary has RTMP for players', (t) => {
  const addresses: Addresses = { ice: [], rtmpPlay: { port: 1935, tlsPort: 1936 } };
  const text = summary(config, addresses, { version: '1', color: false });
  t.regex(text, /RTMP +rtmp:\/\/localhost\/app\/mystream\n +RTMPS +rtmps:\/\/localhost:1936\/app\/mystream\n/);
  t.deepEqual(clientAddresses(config, addresses), { rtmpPlay: ['rtmp://localhost:1935', 'rtmps://localhost:1936'] });
});

test('the start summary has FLV over HTTP', (t) => {
  const addresses: Addresses = { ice: [], flv: { port: 3333, tlsPort: 3334 } };
  const text = summary(config, addresses, { version: '1', color: false });
  t.regex(text, /HTTP-FLV +http:\/\/localhost:3333\/app\/mystream\.flv +\(\.ts for MPEG-TS\)/);
  t.deepEqual(clientAddresses(config, addresses), { flv: ['http://localhost:3333', 'https://localhost:3334'] });
});

test('the start summary has HLS with MPEG-TS, also where nothing else is to be watched', (t) => {
  const text = summary(config, { ice: [], hls: { port: 8080 } }, { version: '1', color: false });
  t.regex(text, /HLS +http:\/\/localhost:8080\/app\/mystream\/ts:playlist\.m3u8 +\(MPEG-TS\)/);
  t.notRegex(text, /Page|LL-HLS/);
});

test('the start summary has each secure port once, beside the plain ones', (t) => {
  const addresses: Addresses = {
    ice: [],
    llhls: { port: 80, tlsPort: 443 },
    webrtc: { port: 3333, tlsPort: 443 },
    api: { port: 8081, tlsPort: 8082 },
  };
  const lines = summary(config, addresses, { version: '1', color: false })
    .split('\n')
    .filter((line) => line.includes('https'));
  t.deepEqual(
    lines.map((line) => line.trim().replaceAll(/ +/g, ' ')),
    ['TLS https://localhost (the same, encrypted)', 'TLS https://localhost:8082 (the same, encrypted)'],
  );
});

test('shows a host name that is one, and escapes names in addresses', (t) => {
  const [vhost] = config.virtualHosts;
  if (vhost === undefined) return t.fail();
  const host = { ...vhost.host, names: ['*.example', 'live.example'] };
  const named = { ...config, virtualHosts: [{ ...vhost, host }] };
  const text = summary(named, EVERYTHING, { version: '1', demo: { app: 'app', stream: 'a b' }, color: false });
  t.regex(text, /http:\/\/live\.example:3333\/app\/a%20b\/llhls\.m3u8/);
});

/** The sample with these names of its virtual host and of the API, listening on these addresses. */
function reachedBy(names: string[], ip = ['*'], apiNames = ['*']): string {
  const virtualHosts = config.virtualHosts.map((vhost) => ({ ...vhost, host: { ...vhost.host, names } }));
  const { managers } = config;
  const named = managers && { ...managers, host: { ...managers.host, names: apiNames } };
  return summary({ ...config, ip, virtualHosts, managers: named }, EVERYTHING, { version: '1', color: false });
}

test('addresses are ones that answer, whatever the names are', (t) => {
  t.regex(reachedBy(['2001:db8::1']), /http:\/\/\[2001:db8::1\]:3333\/app\/mystream\/llhls\.m3u8/);
  t.regex(reachedBy(['no host', 'live.example']), /http:\/\/live\.example:3333\//);
  t.regex(reachedBy(['*'], ['10.1.2.3']), /rtmp:\/\/10\.1\.2\.3\/app[^]*http:\/\/10\.1\.2\.3:8081\/v1/);
  t.regex(reachedBy(['*'], ['fd00::1']), /rtmp:\/\/\[fd00::1\]\/app/);
  t.regex(reachedBy(['*'], ['fd00::1', '127.0.0.1']), /rtmp:\/\/127\.0\.0\.1\/app/);
  t.regex(reachedBy(['live.example'], ['*'], ['*.x', 'api.example']), /http:\/\/api\.example:8081\/v1/);
  t.regex(reachedBy(['live.example']), /http:\/\/localhost:8081\/v1/);
});

test('colour is of a terminal only, and changes no word', (t) => {
  const options = { version: '1', token: 'kiln:secret' };
  const plain = summary(config, EVERYTHING, { ...options, color: false });
  const coloured = summary(config, EVERYTHING, { ...options, color: true });
  t.notRegex(plain, /\x1b/);
  t.not(coloured, plain);
  t.is(coloured.replaceAll(/\x1b\[[\d;]*m/g, ''), plain);
  t.true(wantsColor({ isTTY: true }, {}));
  t.false(wantsColor({ isTTY: true }, { NO_COLOR: '1' }));
  t.false(wantsColor({ isTTY: true }, { TERM: 'dumb' }));
  t.false(wantsColor({}, {}));
});

test('the start summary has RTMP over TLS beside RTMP, or alone', (t) => {
  const of = (rtmp: Addresses['rtmp']) =>
    summary(config, { ice: [], rtmp }, { version: '1', color: false })
      .split('\n')
      .filter((line) => /rtmps?:/i.test(line))
      .map((line) => line.trim().replaceAll(/ +/g, ' '));
  t.deepEqual(of({ port: 1935, tlsPort: 443 }), [
    'RTMP rtmp://localhost/app/mystream',
    'RTMPS rtmps://localhost/app/mystream',
    'OBS Service: Custom, Server: rtmp://localhost/app, Stream Key: mystream',
  ]);
  t.deepEqual(of({ tlsPort: 1936 }), [
    'RTMPS rtmps://localhost:1936/app/mystream',
    'OBS Service: Custom, Server: rtmps://localhost:1936/app, Stream Key: mystream',
  ]);
  const { rtmp } = clientAddresses(config, { ice: [], rtmp: { port: 1935, tlsPort: 443 } });
  t.deepEqual(rtmp, ['rtmp://localhost:1935', 'rtmps://localhost:443']);
});
