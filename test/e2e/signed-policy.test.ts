import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { signUrl, type PolicyFields } from '../../src/access/policy/sign.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln, TOKEN } from '../support/server/kiln.ts';
import { BYPASS, ladderXml, OPUS } from '../support/media/ladder-config.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO } from '../support/webrtc/offers.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const run = promisify(execFile);
const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const HOUR = 3_600_000;
const SECRET = 'a very secret key';
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: SECRET,
  algorithm: 'sha1',
} as const;
const SIGNED_POLICY = `<SignedPolicy>
  <PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>
  <SecretKey>${SECRET}</SecretKey>
  <Enables><Providers>rtmp,webrtc,srt</Providers><Publishers>webrtc,llhls,thumbnail,srt</Publishers></Enables>
</SignedPolicy>`;
const PICTURES = '<Image><Name>jpeg</Name><Codec>jpeg</Codec><Framerate>2</Framerate><Width>128</Width></Image>';
const SENDING = { ...H264_VIDEO, direction: 'sendonly' };

function sign(url: string, fields: Partial<PolicyFields> = {}): string {
  return signUrl(url, { url_expire: Date.now() + HOUR, ...fields }, SIGNING);
}

/** Every way in which a URL is not what it has to be. */
const WRONG: Readonly<Record<string, (url: string) => string>> = {
  unsigned: (url) => url,
  'of another stream': (url) => sign(url.replace('/live', '/other')).replace('/other', '/live'),
  expired: (url) => sign(url, { url_expire: Date.now() - 1000 }),
  'not active': (url) => sign(url, { url_activate: Date.now() + HOUR }),
  'of another address': (url) => sign(url, { allow_ip: '192.0.2.0/24' }),
};

async function start(t: ExecutionContext, hostName = '*'): Promise<Kiln> {
  const kiln = await Kiln.start({
    hostName,
    vhost: SIGNED_POLICY,
    srt: {},
    whip: true,
    application: ladderXml([BYPASS, OPUS, PICTURES]),
    publishers: '<Thumbnail/>',
  });
  t.teardown(() => kiln.stop());
  return kiln;
}

/** ffmpeg that publishes a test pattern, until the test is over. */
function publish(t: ExecutionContext, format: string, url: string): Program {
  const program = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', format, url]);
  t.teardown(() => program.stop());
  return program;
}

/** Status and body that curl gets. */
async function curl(url: string, ...args: string[]): Promise<readonly [status: number, body: string]> {
  const { stdout } = await run('curl', ['-sS', '--max-time', '90', '-w', '\n%{http_code}', ...args, url]);
  const end = stdout.lastIndexOf('\n');
  return [Number(stdout.slice(end + 1)), stdout.slice(0, end)];
}

const post = (url: string, offer: string) => curl(url, '-H', 'Content-Type: application/sdp', '--data-binary', offer);

test.serial('publishers over RTMP, SRT and WHIP come in with a signed URL only', async (t) => {
  const kiln = await start(t);
  const srt = `srt://127.0.0.1:${kiln.ports.srt}`;
  const caller = (streamId: string) =>
    `${srt}?streamid=${encodeURIComponent(streamId)}&pkt_size=1316&connect_timeout=60000`;
  for (const [what, wrong] of Object.entries(WRONG)) {
    const [rtmp, overSrt] = [
      publish(t, 'flv', wrong(kiln.rtmpUrl('live'))),
      publish(t, 'mpegts', caller(wrong(`${srt}/app/live`))),
    ];
    t.not(await rtmp.exited(), 0, `${what}: RTMP`);
    t.not(await overSrt.exited(), 0, `${what}: SRT`);
    const [status] = await post(wrong(kiln.httpUrl('/app/live?direction=whip')), offerOf([SENDING]));
    t.is(status, 401, `${what}: WHIP`);
  }
  t.is((await kiln.stream('live')).status, 404);

  publish(t, 'flv', sign(kiln.rtmpUrl('rtmp')));
  publish(t, 'mpegts', caller(sign(`${srt}/app/srt`)));
  // as a vhost's name and without a port, which is then that of the server
  publish(t, 'mpegts', caller(sign(`${srt}/app/short`).replace(/^srt:\/\/([^:]+):\d+/, '$1')));
  const [status, body] = await post(sign(kiln.httpUrl('/app/whip?direction=whip')), offerOf([SENDING]));
  t.is(status, 201, body);
  await Promise.all(['rtmp', 'srt', 'short'].map((name) => kiln.liveStream(name)));

  const end = Date.now() + 10_000;
  const limited = publish(t, 'flv', sign(kiln.rtmpUrl('limited'), { stream_expire: end }));
  await limited.exited();
  t.true(Date.now() >= end, 'it lasted until its stream_expire');
  await until('the stream is gone', async () => (await kiln.stream('limited')).status === 404);

  // one that begins after that is refused
  await until('the log tells why', () => /its allowed time is over|the time of its session ended/.test(kiln.log));
  t.regex(kiln.log, /RTMP publisher refused: Access denied: the URL has no policy/);
  t.regex(kiln.log, /SRT publisher refused: Access denied: the signature of the URL is not that of its text/);
  for (const secret of [SECRET, 'signature=', 'policy=']) t.false(kiln.log.includes(secret), secret);
});

test.serial('viewers over WebRTC, LL-HLS, SRT and of thumbnails come in with a signed URL only', async (t) => {
  const kiln = await start(t);
  publish(t, 'flv', sign(kiln.rtmpUrl('live')));
  await kiln.liveStream('live');
  const whep = kiln.httpUrl('/app/live?direction=whep');
  const master = kiln.httpUrl('/app/live/llhls.m3u8');
  const picture = kiln.httpUrl('/app/live/thumb.jpg');
  const socket = kiln.httpUrl('/app/live').replace('http', 'ws');
  const offer = offerOf([H264_VIDEO, OPUS_AUDIO]);
  const srtPlay = (url: string) =>
    `srt://127.0.0.1:${kiln.ports.srtPlay}?streamid=${encodeURIComponent(url)}&connect_timeout=60000`;
  const srt = `srt://127.0.0.1:${kiln.ports.srtPlay}/app/live`;
  const probe = (url: string) =>
    run('ffprobe', ['-v', 'error', '-show_streams', srtPlay(url)], { timeout: PATIENCE_MS });

  for (const [what, wrong] of Object.entries(WRONG)) {
    t.deepEqual(await post(wrong(whep), offer), [401, 'Access denied'], `${what}: WHEP`);
    t.deepEqual(await curl(wrong(master)), [401, ''], `${what}: LL-HLS`);
    t.is((await curl(wrong(picture)))[0], 401, `${what}: thumbnail`);
    await t.throwsAsync(probe(wrong(srt)), undefined, `${what}: SRT`);
    const client = await SignallingClient.open(wrong(socket));
    client.send({ command: 'request_offer' });
    const answer = await client.next(({ error }) => error !== undefined);
    t.deepEqual(answer, { code: 404, error: 'Cannot create offer' }, `${what}: signalling`);
    await client.end();
  }

  t.is((await post(sign(whep), offer))[0], 201);
  const [status, playlist] = await until('the playlist is there', async () => {
    const answer = await curl(sign(master));
    return answer[0] === 200 && answer;
  });
  t.is(status, 200);
  t.regex(playlist, /^#EXTM3U/);
  await until('the picture is there', async () => (await curl(sign(picture)))[0] === 200);
  t.regex((await probe(sign(srt))).stdout, /codec_name=h264/);
  const client = await SignallingClient.open(sign(socket));
  t.teardown(() => client.socket.terminate());
  client.send({ command: 'request_offer' });
  t.is((await client.command('offer')).code, 200);
});

test.serial(
  'a virtual host that the API makes signs from then on, and shows its key to the token holder only',
  async (t) => {
    const kiln = await start(t, '127.0.0.1');
    const vhost = {
      name: 'made',
      host: { names: ['localhost'] },
      signedPolicy: { ...SIGNING, secretKey: 'another key', algorithm: 'sha256', enables: { providers: 'rtmp' } },
    };
    const application = { name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } };
    t.is((await kiln.api('/v1/vhosts', 'POST', [vhost])).status, 200);
    t.is((await kiln.api('/v1/vhosts/made/apps', 'POST', [application])).status, 200);
    const { body } = await kiln.api<{ signedPolicy: object }>('/v1/vhosts/made');
    t.like(body.response.signedPolicy, { secretKey: 'another key', algorithm: 'sha256' });
    const open = await fetch(`http://127.0.0.1:${kiln.ports.api}/v1/vhosts/made`);
    t.is(open.status, 401);
    t.false((await open.text()).includes('another key'));

    const url = kiln.rtmpUrl('live').replace('127.0.0.1', 'localhost');
    const refused = publish(t, 'flv', sign(url));
    t.not(await refused.exited(), 0, 'by the key of another virtual host');
    publish(
      t,
      'flv',
      signUrl(url, { url_expire: Date.now() + HOUR }, { ...SIGNING, secretKey: 'another key', algorithm: 'sha256' }),
    );
    await until(
      'the stream is live',
      async () => (await kiln.api('/v1/vhosts/made/apps/app/streams/live')).status === 200,
    );
    for (const secret of ['another key', SECRET, TOKEN]) t.false(kiln.log.includes(secret), secret);
  },
);
