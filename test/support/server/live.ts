import type { ApplicationConfig, VirtualHostConfig } from '../../../src/config/model.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import type { Registry } from '../../../src/core/registry.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';

const PLAYLIST_OPTIONS = {
  webrtcAutoAbr: true,
  webrtcAudioOnlyFallback: false,
  hlsChunklistPathDepth: -1,
  enableTsPackaging: false,
};

export interface VhostShape {
  readonly name?: string;
  readonly hostNames?: readonly string[];
  readonly applications?: readonly string[];
  readonly providers?: Partial<ApplicationConfig['providers']>;
  readonly publishers?: Partial<ApplicationConfig['publishers']>;
  readonly signedPolicy?: VirtualHostConfig['signedPolicy'];
  readonly admissionWebhooks?: VirtualHostConfig['admissionWebhooks'];
  readonly limits?: ApplicationConfig['limits'];
  readonly users?: ApplicationConfig['users'];
  readonly outputProfile?: ApplicationConfig['outputProfiles']['outputProfile'];
}

/** Adds a virtual host whose applications have LL-HLS and WebRTC on, without the rest of a configuration. */
export function addVhost(registry: Registry, shape: VhostShape = {}): void {
  const {
    name = 'default',
    hostNames = ['*'],
    applications = ['app'],
    signedPolicy,
    admissionWebhooks,
    limits,
    users,
    providers,
    outputProfile = [],
  } = shape;
  const publishers = shape.publishers ?? { llhls: {}, webrtc: {} };
  const config = {
    name,
    signedPolicy,
    admissionWebhooks,
    host: { names: hostNames },
    applications: applications.map((application) => ({
      name: application,
      type: 'live',
      limits,
      users,
      providers,
      publishers,
      outputProfiles: { outputProfile },
    })),
  };
  registry.createVhost(config as unknown as VirtualHostConfig, true);
}

export const VIDEO: Track = {
  id: 0,
  name: 'video',
  type: 'video',
  codec: 'H264',
  timebase: VIDEO_TIMEBASE,
  bypass: true,
  width: 1280,
  height: 720,
  bitrate: 0,
  framerate: 30,
  keyFrameInterval: 0,
};

export const AUDIO: Track = {
  id: 1,
  name: 'audio',
  type: 'audio',
  codec: 'AAC',
  timebase: { num: 1, den: 48_000 },
  bypass: true,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};

/** Makes a stream live with the playlists that LL-HLS and WebRTC add; ends with `output.input.close`. */
export function goLive(
  registry: Registry,
  app: string,
  name: string,
  tracks: readonly Track[] = [VIDEO, AUDIO],
): OutputStream {
  const application = [...registry.vhosts.values()].flatMap((vhost) => vhost.applications.get(app) ?? [])[0];
  if (application === undefined) throw new Error(`no application ${app}`);
  const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks(tracks);
  const output = application.addOutput(input, name);
  output.setTracks(tracks);
  for (const [playlist, fileName] of [
    ['llhls_default', 'llhls'],
    ['webrtc_default', 'webrtc_default'],
  ] as const) {
    output.addPlaylist({ name: playlist, fileName, options: PLAYLIST_OPTIONS, renditions: [{}] });
  }
  return output;
}
