import { spawn, type ChildProcess } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { freePorts } from '../support/network/ports.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';
const STATISTICS = '/v2/stats/current/vhosts/default/apps/app';

interface Statistics {
  readonly providers: { readonly connections: Readonly<Record<string, number>>; readonly totalBytesIn: number };
}
interface Answer {
  readonly message: string;
}

/** An ffmpeg that serves one player of an RTMP stream, again and again. */
function serve(t: ExecutionContext, name: string): { url: string; stop(): void } {
  const [port] = freePorts(1) as [number];
  const url = `rtmp://127.0.0.1:${port}/live/${name}`;
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=440:r=44100'];
  const video = ['-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '25'];
  let child: ChildProcess | undefined;
  let isOver = false;
  const next = (): void => {
    if (isOver) return;
    const output = ['-c:a', 'aac', '-ac', '2', '-f', 'flv', '-listen', '1', url];
    child = spawn('ffmpeg', ['-v', 'error', '-re', ...inputs, ...video, ...output], { stdio: 'ignore' });
    child.once('exit', next);
  };
  next();
  const stop = (): void => {
    isOver = true;
    child?.kill('SIGKILL');
  };
  t.teardown(stop);
  return { url, stop };
}

async function start(t: ExecutionContext, providers: string): Promise<Kiln> {
  const kiln = await Kiln.start({ providers });
  t.teardown(() => kiln.stop());
  return kiln;
}

test.serial('a stream of an RTMP server plays, is counted, and its second URL takes over', async (t) => {
  const servers = [serve(t, 'one'), serve(t, 'two')] as const;
  const kiln = await start(t, '<RTMPPull/>');
  const urls = servers.map(({ url }) => url);
  const properties = { persistent: true, noInputFailoverTimeoutMs: 15_000 };
  // an ffmpeg takes a while to listen
  const made = await until('a server listens', async () => {
    const answer = await kiln.api(STREAMS, 'POST', { name: 'cam', urls, properties });
    return answer.status === 201 && answer;
  });
  t.is(made.status, 201);
  const live = await kiln.liveStream('cam');
  t.like(live.input, { sourceType: 'RtmpPull', sourceUrl: urls.find((url) => url === live.input.sourceUrl) });
  t.deepEqual(
    live.input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'AAC'],
  );
  const { body } = await kiln.api<Statistics>(STATISTICS);
  t.is(body.response.providers.connections.rtmppull, 1);
  t.true(body.response.providers.totalBytesIn > 0);
  await until('it plays', async () => (await fetch(kiln.httpUrl('/app/cam/llhls.m3u8'))).status === 200);

  const first = urls.indexOf(live.input.sourceUrl ?? '');
  servers[first === 0 ? 0 : 1].stop();
  const other = urls[1 - first];
  await until('the other URL', async () => (await kiln.stream('cam')).body.response.input.sourceUrl === other);
  await kiln.liveStream('cam');
  t.is((await kiln.api(`${STREAMS}/cam`, 'DELETE')).status, 200);
  const after = await kiln.api<Statistics>(STATISTICS);
  t.false('rtmppull' in after.body.response.providers.connections);
});

test.serial('what cannot be pulled is told', async (t) => {
  const kiln = await start(t, '<RTMPPull/>');
  const [closed] = freePorts(1) as [number];
  for (const [url, reason] of [
    [`rtmp://user:secret@127.0.0.1:${closed}/live/s`, /refused the connection/],
    ['rtmp://127.0.0.1/live', /not an RTMP URL of an application and a stream/],
    [`rtmp://127.0.0.1:${kiln.ports.rtmp}/app/s`, /is not allowed: the port belongs to this server/],
    [`rtmps://127.0.0.1:${closed}/live/s`, /refused the connection/],
  ] as const) {
    const { status, body } = await kiln.api<Answer>(STREAMS, 'POST', { name: 'none', urls: [url] });
    t.is(status, 502, url);
    await until(`the log tells why: ${reason}`, () => reason.test(kiln.log));
    t.notRegex(`${JSON.stringify(body)} ${kiln.log}`, /secret/);
  }
  const without = await start(t, '');
  const { status } = await without.api(STREAMS, 'POST', { name: 'none', urls: ['rtmp://127.0.0.1/live/s'] });
  t.is(status, 502);
  const off = /the RTMPPull provider is off: the application has no <RTMPPull\/> in its Providers/;
  await until('the log tells why', () => off.test(without.log));
});
