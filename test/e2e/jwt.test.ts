import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { EC, ISSUER, keySet, OTHER_EC, RSA, token, type Signer } from '../support/access/tokens.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';
import { H264_VIDEO, offerOf } from '../support/webrtc/offers.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const OFFERS = {
  whip: offerOf([{ ...H264_VIDEO, direction: 'sendonly' }]),
  whep: offerOf([H264_VIDEO]),
};

/** A server whose clients need tokens with a key of the set that an identity provider publishes. */
async function start(t: ExecutionContext): Promise<Kiln> {
  const provider = createServer((_, response) => void response.end(keySet({ ec: EC, rsa: RSA })));
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  t.teardown(() => provider.close());
  const { port } = provider.address() as AddressInfo;
  const kiln = await Kiln.start({
    vhost: `<JWT>
      <JWKSUrl>http://127.0.0.1:${port}/keys</JWKSUrl><Issuer>${ISSUER}</Issuer>
      <Enables><Providers>rtmp,webrtc,srt</Providers><Publishers>webrtc,llhls,srt</Publishers></Enables>
    </JWT>`,
    srt: {},
    whip: true,
  });
  t.teardown(() => kiln.stop());
  return kiln;
}

function may(action: string, path: string, by: Signer = EC, kid = 'ec'): string {
  return token(by, { iss: ISSUER, kiln_permissions: [{ action, path }] }, { kid });
}

function publish(t: ExecutionContext, format: string, url: string): Program {
  const program = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', format, url]);
  t.teardown(() => program.stop());
  return program;
}

const post = (url: string, offer: string, bearer?: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/sdp', ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) },
    body: offer,
  });

const refusal = ({ status, headers }: Response) => [status, headers.get('www-authenticate')];

test('publishers and viewers come in with a token that permits it, by each of their ways', async (t) => {
  const kiln = await start(t);
  const srt = (name: string, given: string): string =>
    `srt://127.0.0.1:${kiln.ports.srt}?pkt_size=1316&connect_timeout=60000&streamid=${encodeURIComponent(
      `srt://127.0.0.1:${kiln.ports.srt}/app/${name}?token=${given}`,
    )}`;
  const reader = may('read', '');
  const refused = [
    publish(t, 'flv', kiln.rtmpUrl('rtmp')),
    publish(t, 'flv', `${kiln.rtmpUrl('rtmp')}?token=${reader}`),
    publish(t, 'flv', `${kiln.rtmpUrl('rtmp')}?token=${may('publish', '', OTHER_EC)}`),
    publish(t, 'mpegts', srt('srt', may('publish', 'app/other'))),
  ];
  for (const program of refused) t.not(await program.exited(), 0);
  t.is((await kiln.stream('rtmp')).status, 404);

  const rtmp = may('publish', 'app/rtmp', RSA, 'rsa');
  publish(t, 'flv', `${kiln.rtmpUrl('rtmp')}?token=${rtmp}`);
  publish(t, 'mpegts', srt('srt', may('publish', '~^app/s')));
  await Promise.all(['rtmp', 'srt'].map((name) => kiln.liveStream(name)));

  const whip = kiln.httpUrl('/app/whip?direction=whip');
  t.deepEqual(refusal(await post(whip, OFFERS.whip)), [401, 'Bearer realm="Kiln"']);
  t.deepEqual(refusal(await post(whip, OFFERS.whip, 'a-key')), [401, 'Bearer realm="Kiln", error="invalid_token"']);
  t.is((await post(whip, OFFERS.whip, may('publish', 'app/whip'))).status, 201);
  const whep = kiln.httpUrl('/app/rtmp?direction=whep');
  t.deepEqual(refusal(await post(whep, OFFERS.whep)), [401, 'Bearer realm="Kiln"']);
  t.is((await post(whep, OFFERS.whep, may('read', 'app/rtmp'))).status, 201);

  const viewer = may('read', 'app/rtmp');
  const master = kiln.httpUrl('/app/rtmp/llhls.m3u8');
  t.deepEqual(refusal(await fetch(master)), [401, 'Bearer realm="Kiln"']);
  const ofOther = await fetch(`${master}?token=${may('read', 'app/srt')}`);
  t.deepEqual(refusal(ofOther), [401, 'Bearer realm="Kiln", error="insufficient_scope"']);
  const asked = {
    header: () => fetch(master, { headers: { authorization: `Bearer ${viewer}` } }),
    query: () => fetch(`${master}?a=b&token=${viewer}`),
  };
  for (const [how, ask] of Object.entries(asked)) {
    const list = await until(`the playlist, by a token in the ${how}`, async () => {
      const answer = await ask();
      return answer.ok && (await answer.text());
    });
    t.false(list.includes(viewer), 'the session in their URLs admits to what follows');
    const [first = ''] = urisOf(list, master);
    t.is(new URL(first).searchParams.get('a'), how === 'query' ? 'b' : null);
    t.is((await fetch(first)).status, 200);
  }

  t.regex(kiln.log, /SRT publisher refused: Access denied: the token permits no publish of app\/srt by srt/);
  t.regex(kiln.log, /RTMP publisher refused: Access denied: there is no token/);
  t.regex(kiln.log, /RTMP publisher refused: Access denied: the token is not signed with a key of this virtual host/);
  for (const secret of [viewer, rtmp, reader]) t.false(kiln.log.includes(secret));
});
