import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import fastify from 'fastify';
import type { Browser, Page } from 'playwright-core';
import { apiRoutes } from '../../../src/api/app.ts';
import { Flow, type PublisherKind } from '../../../src/core/counters.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Recordings } from '../../../src/recording/finished/recordings.ts';
import { apiHomeRoutes } from '../../../src/web/api-home.ts';
import { AUDIO, RTMP, VIDEO, video } from '../../unit/core/support.ts';
import { apiOptions, createVhost, TOKEN } from '../api/api.ts';
import { channelNode } from '../channels/channels.ts';

const APPLICATION = {
  name: 'app',
  type: 'live',
  providers: { rtmp: {}, schedule: {}, multiplex: {} },
  publishers: { llhls: {}, webrtc: {}, file: {}, push: {} },
};

const ADDRESSES = {
  rtmp: ['rtmp://kiln.example:1935'],
  whip: ['http://kiln.example:3333'],
  srt: ['srt://kiln.example:9999'],
  llhls: ['http://kiln.example:3333'],
  hls: ['http://kiln.example:3334'],
  webrtc: ['ws://kiln.example:3335'],
  srtPlay: ['srt://kiln.example:9998'],
  ovt: ['ovt://kiln.example:9000'],
};
const PLAYLIST = {
  name: 'both qualities',
  fileName: 'abr',
  options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: -1, enableTsPackaging: true },
  renditions: [{ name: 'high', videoVariantName: 'Video', audioVariantName: 'Audio' }],
};
const EVENTS = [
  { time: '2020-02-03T12:00:00.000Z', level: 'info', event: 'server.started', msg: 'long ago' },
  { time: new Date().toISOString(), level: 'warn', event: 'client.refused', msg: '<b>no</b>' },
];

interface ConsoleOptions {
  readonly colorScheme?: 'light' | 'dark';
  readonly width?: number;
  readonly recordings?: Recordings;
  /** Publishers of the application besides its own. */
  readonly publishers?: object;
  /** Addresses of the node besides its own. */
  readonly addresses?: object;
}

/** A node with one stream of two outputs, whose channels and pushes go nowhere, and the console of its API. */
export async function openConsole(
  t: ExecutionContext,
  browser: Browser,
  { colorScheme = 'light', width = 390, recordings, publishers, addresses }: ConsoleOptions = {},
) {
  const registry = new Registry();
  const applications = [{ ...APPLICATION, publishers: { ...APPLICATION.publishers, ...publishers } }];
  createVhost(registry, { name: 'default', host: { names: ['*'] }, applications });
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO, AUDIO]);
  const [output, other] = ['live', 'live_hd'].map((name) => application.addOutput(input, name));
  for (const one of [output, other]) one?.setTracks([VIDEO, AUDIO]);
  if (output === undefined) throw new Error('there is no output');
  output.addPlaylist(PLAYLIST);
  for (let frame = 0; frame <= 75; frame++) input.write(video(frame / 25, frame % 25 === 0));
  const folder = await mkdtemp(join(tmpdir(), 'kiln-test-'));
  const options = await apiOptions({}, registry, undefined, folder);
  options.cluster.describe({
    load: 0.25,
    full: false,
    info: { addresses: { ...ADDRESSES, ...addresses }, version: '1.2.3' },
  });
  const node = channelNode(options.cluster, '/nowhere', registry);
  // on a busy machine its routes take long to be made
  const app = fastify({ pluginTimeout: 0 });
  await app.register(apiHomeRoutes);
  const own = { channels: node.channels, events: () => EVENTS, ...(recordings !== undefined && { recordings }) };
  await app.register(apiRoutes({ ...options, ...own }));
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const errors: string[] = [];
  /** Another page of the same browser, which knows nothing of the others. */
  const openPage = async (path = '/console') => {
    const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
    page.on('pageerror', (error) => errors.push(error.message));
    await page.goto(`${address}${path}`);
    return page;
  };
  const page = await openPage();
  t.teardown(async () => {
    await page.close();
    await app.close();
    await node.close();
    await options.cluster.close();
    await rm(folder, { recursive: true });
  });
  return { page, openPage, address, errors, registry, input, output, app, cluster: options.cluster };
}

/** Somebody who plays an output stream, and leaves when disconnected. */
export function addViewer(output: OutputStream, id: string, kind: PublisherKind): void {
  const createdTime = Date.now();
  const leave = output.addSession({ id, kind, createdTime, out: new Flow(createdTime), kick: () => leave() });
}

export async function signIn(page: Page, token = TOKEN): Promise<void> {
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Shows a view, and waits until it has what it shows. */
export async function showView(page: Page, view: string): Promise<void> {
  const answered = page.waitForResponse((response) => response.url().includes('/v1/'));
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  await answered;
  await page.locator('#view h1').waitFor();
}

/** The view of the stream that `openConsole` has. */
export const STREAM_VIEW = 'streams/default/app/live';
