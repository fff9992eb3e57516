import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { codecsOf, probe } from '../support/media/probe.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const run = promisify(execFile);
const STREAMS = '/v1/vhosts/default/apps/app/streams';
const STATISTICS = '/v2/stats/current/vhosts/default/apps/app';

interface Statistics {
  readonly providers: { readonly connections: Readonly<Record<string, number>>; readonly totalBytesIn: number };
}

async function start(t: ExecutionContext, options: KilnOptions): Promise<Kiln> {
  const kiln = await Kiln.start(options);
  t.teardown(() => kiln.stop());
  return kiln;
}

test.serial("a stream of another Kiln's WHEP endpoint plays, is counted, and comes back", async (t) => {
  const origin = await start(t, {});
  const kiln = await start(t, { whip: true });
  let encoder = publishPattern(origin.rtmpUrl('talk'));
  t.teardown(() => encoder.stop());
  await origin.liveStream('talk');
  const urls = [`whep://${origin.address}:${origin.ports.http}/app/talk?direction=whep`];
  const properties = { persistent: true, noInputFailoverTimeoutMs: 15_000 };
  await until('it can be pulled', async () => {
    const { status } = await kiln.api(STREAMS, 'POST', { name: 'copy', urls, properties });
    return status === 201;
  });
  const live = await kiln.liveStream('copy');
  t.like(live.input, {
    sourceType: 'WebRTC',
    sourceUrl: urls[0],
    connection: { protocol: 'UDP', remoteAddress: '127.0.0.1' },
  });
  t.deepEqual(
    live.input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'OPUS'],
  );
  const { body } = await kiln.api<Statistics>(STATISTICS);
  t.is(body.response.providers.connections.webrtc, 1);
  t.true(body.response.providers.totalBytesIn > 0);

  const playlist = kiln.httpUrl('/app/copy/llhls.m3u8');
  await until('it plays', async () => (await fetch(playlist)).status === 200);
  t.deepEqual(codecsOf(await probe(playlist)), ['aac', 'h264']);
  const { stderr } = await run(
    'ffmpeg',
    ['-v', 'error', '-xerror', '-t', '5', '-i', playlist, '-fps_mode', 'vfr', '-f', 'null', '-'],
    {
      timeout: PATIENCE_MS,
    },
  );
  t.is(stderr, '');

  await encoder.stop();
  const lost = (): number => kiln.log.split('DTLS is closed').length - 1;
  await until('it is reported', () => lost() > 0);
  const before = (await kiln.api<Statistics>(STATISTICS)).body.response.providers.totalBytesIn;
  encoder = publishPattern(origin.rtmpUrl('talk'));
  await until('more comes', async () => {
    return (await kiln.api<Statistics>(STATISTICS)).body.response.providers.totalBytesIn > before + 100_000;
  });
  await until('it plays again', async () => (await fetch(playlist)).status === 200);
});

test.serial('pulls over WHEP that are not allowed are refused with the reason', async (t) => {
  const kiln = await start(t, { whip: true });
  for (const [url, reason] of [
    [`whep://secret@127.0.0.1:${kiln.ports.http}/app/s`, /is not allowed: the port belongs to this server/],
    ['whep://169.254.169.254/app/s', /169\.254\.169\.254 is a link-local/],
  ] as const) {
    const { status, body } = await kiln.api(STREAMS, 'POST', { name: 'none', urls: [url] });
    t.is(status, 502, url);
    t.regex(kiln.log, reason, url);
    t.notRegex(`${JSON.stringify(body)} ${kiln.log}`, /secret/);
  }
  const without = await start(t, {});
  t.is((await without.api(STREAMS, 'POST', { name: 'none', urls: ['whep://127.0.0.1/s'] })).status, 502);
  t.regex(without.log, /the WebRTC provider is off/);
});
