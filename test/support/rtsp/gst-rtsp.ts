import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';

const SCRIPT = join(import.meta.dirname, 'rtsp-server.py');
/** Debian's, which has GStreamer's bindings. */
const PYTHON = '/usr/bin/python3';

export interface GstServerOptions {
  /** Pipelines by path, as GStreamer's RTSPMediaFactory takes them. */
  readonly mounts: Readonly<Record<string, string>>;
  /** What is offered; everything unless given. */
  readonly protocols?: readonly ('tcp' | 'udp')[];
  readonly auth?: { readonly user: string; readonly password: string; readonly method: 'basic' | 'digest' };
  /** Takes streams that are published, whose depayloaders are `depay0` and so on, instead of playing some. */
  readonly records?: boolean;
  /** A free one unless given. */
  readonly port?: number;
}

export interface GstServer {
  readonly port: number;
  url(path: string, user?: string): string;
  stop(): Promise<void>;
}

/** GStreamer's RTSP server. */
export async function startGst(t: Pick<ExecutionContext, 'teardown'>, options: GstServerOptions): Promise<GstServer> {
  const child = spawn(PYTHON, [SCRIPT, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'ignore'] });
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  t.teardown(stop);
  const [line] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => ['no server'])])) as [
    Buffer | string,
  ];
  const port = Number(line.toString());
  if (!(port > 0)) throw new Error(`GStreamer's RTSP server did not start: ${line.toString()}`);
  return { port, url: (path, user = '') => `rtsp://${user}127.0.0.1:${port}${path}`, stop };
}

const SMALL = 'video/x-raw,format=I420,width=160,height=90,framerate=25/1';

/** Pictures and sound of live pipelines, as elements with their payloaders. */
export const GST = {
  h264: (slot = 0) =>
    `videotestsrc is-live=true pattern=ball ! ${SMALL} ! x264enc tune=zerolatency key-int-max=12 ! rtph264pay name=pay${slot} pt=96`,
  h264BFrames: (slot = 0) =>
    `videotestsrc is-live=true pattern=ball ! ${SMALL} ! x264enc bframes=2 b-adapt=false key-int-max=25 rc-lookahead=5 ! video/x-h264,profile=high ! rtph264pay name=pay${slot} pt=96`,
  h265: (slot = 0) =>
    `videotestsrc is-live=true pattern=ball ! ${SMALL} ! x265enc tune=zerolatency key-int-max=12 ! rtph265pay name=pay${slot} pt=96`,
  vp8: (slot = 0) =>
    `videotestsrc is-live=true pattern=ball ! ${SMALL} ! vp8enc deadline=1 keyframe-max-dist=12 ! rtpvp8pay name=pay${slot} pt=96`,
  aac: (slot = 1) =>
    `audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! avenc_aac ! rtpmp4gpay name=pay${slot} pt=97`,
  latm: (slot = 1) =>
    `audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! avenc_aac ! rtpmp4apay name=pay${slot} pt=97`,
  opus: (slot = 1) =>
    `audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! opusenc ! rtpopuspay name=pay${slot} pt=97`,
  pcma: (slot = 1) =>
    `audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay${slot}`,
  mp3: (slot = 1) =>
    `audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! lamemp3enc ! mpegaudioparse ! rtpmpapay name=pay${slot}`,
} as const;
