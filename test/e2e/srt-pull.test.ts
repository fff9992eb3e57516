import { spawn, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import test, { type ExecutionContext } from 'ava';
import { freePorts } from '../support/network/ports.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';
const STATISTICS = '/v2/stats/current/vhosts/default/apps/app';
const PASSPHRASE = 'ten-letters';

interface Statistics {
  readonly providers: { readonly connections: Readonly<Record<string, number>>; readonly totalBytesIn: number };
}
interface Answer {
  readonly message: string;
}

/** An ffmpeg that listens for one caller, again and again. */
function listen(t: ExecutionContext): { url: string; stop(): void } {
  const [port] = freePorts(1) as [number];
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=440:r=48000'];
  const video = ['-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '25'];
  const output = ['-c:a', 'aac', '-ac', '2', '-f', 'mpegts'];
  let child: ChildProcess | undefined;
  let isOver = false;
  const next = (): void => {
    if (isOver) return;
    const url = `srt://127.0.0.1:${port}?mode=listener&passphrase=${PASSPHRASE}`;
    child = spawn('ffmpeg', ['-v', 'error', '-re', ...inputs, ...video, ...output, url], { stdio: 'ignore' });
    child.once('exit', next);
  };
  next();
  const stop = (): void => {
    isOver = true;
    child?.kill('SIGKILL');
  };
  t.teardown(stop);
  return { url: `srt://127.0.0.1:${port}?streamid=#!::r=live/one,m=request&passphrase=${PASSPHRASE}`, stop };
}

async function start(t: ExecutionContext, options: Parameters<typeof Kiln.start>[0]): Promise<Kiln> {
  const kiln = await Kiln.start(options);
  t.teardown(() => kiln.stop());
  return kiln;
}

test.serial('a stream of an SRT listener plays, is counted, and its second URL takes over', async (t) => {
  const listeners = [listen(t), listen(t)] as const;
  const kiln = await start(t, { srt: {} });
  const urls = listeners.map(({ url }) => url);
  const properties = { persistent: true, noInputFailoverTimeoutMs: 15_000 };
  // an ffmpeg takes a while to listen
  await until('a listener is there', async () => {
    const { status } = await kiln.api(STREAMS, 'POST', { name: 'cam', urls, properties });
    return status === 201;
  });
  const live = await kiln.liveStream('cam');
  t.like(live.input, { sourceType: 'SRT', connection: { protocol: 'SRT', remoteAddress: '127.0.0.1' } });
  t.deepEqual(
    live.input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'AAC'],
  );
  const { body } = await kiln.api<Statistics>(STATISTICS);
  t.is(body.response.providers.connections.srt, 1);
  t.true(body.response.providers.totalBytesIn > 0);
  await until('it plays', async () => (await fetch(kiln.httpUrl('/app/cam/llhls.m3u8'))).status === 200);

  const first = urls.indexOf(live.input.sourceUrl ?? '');
  listeners[first === 0 ? 0 : 1].stop();
  const other = urls[1 - first];
  await until('the other URL', async () => (await kiln.stream('cam')).body.response.input.sourceUrl === other);
  await kiln.liveStream('cam');
  t.regex(kiln.log, /"msg":"pulled"/);
  t.notRegex(kiln.log, new RegExp(PASSPHRASE));
});

test.serial('what cannot be pulled is told', async (t) => {
  const { url } = listen(t);
  const kiln = await start(t, { srt: {} });
  const [closed] = freePorts(1) as [number];
  const wrong = url.replace(PASSPHRASE, 'another-secret');
  await until('the listener is there, and refuses', async () => {
    const { status } = await kiln.api(STREAMS, 'POST', { name: 'none', urls: [wrong] });
    t.is(status, 502);
    return /the listener refused the call/.test(kiln.log);
  });
  for (const [given, reason] of [
    [`srt://127.0.0.1:${closed}?conntimeo=500`, /Connection timeout/],
    ['srt://127.0.0.1:7000/live/s', /SRT has no paths: the stream is named by `streamid`/],
    ['srt://127.0.0.1:7000?mode=rendezvous', /the mode of the connection can only be `caller` or `listener`/],
    ['srt://localhost:7000?mode=listener', /a listener has an address of this machine/],
    [`srt://127.0.0.1:${kiln.ports.srt}?mode=listener`, /SRT cannot listen on UDP port \d+ of 127\.0\.0\.1/],
    [`srt://127.0.0.1:${kiln.ports.srtPlay}?streamid=app/s`, /is not allowed: the port belongs to this server/],
  ] as const) {
    const { status, body } = await kiln.api<Answer>(STREAMS, 'POST', { name: 'none', urls: [given] });
    t.is(status, 502, given);
    t.regex(kiln.log, reason, given);
    t.notRegex(`${JSON.stringify(body)} ${kiln.log}`, /secret/);
  }
  const without = await start(t, {});
  const { status } = await without.api(STREAMS, 'POST', { name: 'none', urls: [url] });
  t.is(status, 502);
  t.regex(without.log, /the SRT provider is off: the application has no <SRT\/> in its Providers/);
});

/** An ffmpeg that calls, again and again. */
function call(t: ExecutionContext, url: string): { stop(): void } {
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=440:r=48000'];
  const video = ['-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '25'];
  let child: ChildProcess | undefined;
  let isOver = false;
  const next = (): void => {
    if (isOver) return;
    child = spawn('ffmpeg', ['-v', 'error', '-re', ...inputs, ...video, '-c:a', 'aac', '-f', 'mpegts', url], {
      stdio: 'ignore',
    });
    child.once('exit', () => setTimeout(next, 200));
  };
  next();
  const stop = (): void => {
    isOver = true;
    child?.kill('SIGKILL');
  };
  t.teardown(stop);
  return { stop };
}

test.serial('a caller plays on a port that is open while its pull runs', async (t) => {
  const kiln = await start(t, { srt: {} });
  const [port] = freePorts(1) as [number];
  const query = `passphrase=${PASSPHRASE}&streamid=contribution`;
  const pulled = `srt://127.0.0.1:${port}?mode=listener&${query}`;
  const callers = [
    `srt://127.0.0.1:${port}?${query.replace('contribution', 'another')}`,
    `srt://127.0.0.1:${port}?${query.replace(PASSPHRASE, 'another-secret')}`,
    `srt://127.0.0.1:${port}?${query}`,
  ].map((url) => call(t, url));
  const properties = { persistent: true, noInputFailoverTimeoutMs: 15_000 };
  await until('it plays', async () => {
    const { status } = await kiln.api(STREAMS, 'POST', { name: 'called', urls: [pulled], properties });
    return status === 201;
  });
  const live = await kiln.liveStream('called');
  t.like(live.input, { sourceType: 'SRT', connection: { protocol: 'SRT', remoteAddress: '127.0.0.1' } });
  t.is((await kiln.api(STREAMS, 'POST', { name: 'second', urls: [pulled] })).status, 502);
  t.regex(kiln.log, /another pull of this server listens on UDP port/);
  callers[2]?.stop();
  await until('it is reported', () => /pulling the stream failed/.test(kiln.log));
  call(t, `srt://127.0.0.1:${port}?${query}`);
  const old = live.input.connection?.remotePort;
  await until('another caller', async () => {
    const { input } = (await kiln.stream('called')).body.response;
    return input.connection?.remotePort !== undefined && input.connection.remotePort !== old;
  });
  t.is((await kiln.api(`${STREAMS}/called`, 'DELETE')).status, 200);
  await until('the port is free', () => {
    const socket = createSocket('udp4');
    return new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false));
      socket.bind(port, '127.0.0.1', () => socket.close(() => resolve(true)));
    });
  });
  t.notRegex(kiln.log, new RegExp(PASSPHRASE));
});
