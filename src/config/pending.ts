import { clearBesideDrm } from './clear-publishers.ts';
import { isGuarded } from './enables.ts';
import type { ApplicationConfig, ServerConfig, VirtualHostConfig, WebrtcBindConfig } from './model.ts';

/** Tests for whether a module is configured, by the place of its settings. */
interface Places {
  readonly server?: (server: ServerConfig) => unknown;
  readonly vhost?: (vhost: VirtualHostConfig) => unknown;
  readonly application?: (application: ApplicationConfig) => unknown;
}

/** Elements to test: a whole server, or what was created by the management API. */
interface Configured {
  readonly servers: readonly ServerConfig[];
  readonly vhosts: readonly VirtualHostConfig[];
  readonly applications: readonly ApplicationConfig[];
}

const profilesOf = ({ outputProfiles }: ApplicationConfig) => outputProfiles.outputProfile;

const playlistsOf = (application: ApplicationConfig) => profilesOf(application).flatMap(({ playlists }) => playlists);

const lacksSecret = (webrtc: WebrtcBindConfig | undefined): boolean =>
  webrtc !== undefined && webrtc.iceCandidates.tcpRelay.length > 0 && webrtc.iceCandidates.tcpRelaySecret === undefined;

/** FileName that recordings have. */
const RECORDED = 'recorded';

const NO_EFFECT = 'is not available: its configuration has no effect';

/** In origin mode there are no sessions by which requests for chunklists and media could be admitted. */
const opensChildren = (vhost: VirtualHostConfig): boolean =>
  vhost.applications.some(
    ({ publishers: { llhls, hls } }) =>
      (llhls?.originMode === true && isGuarded(vhost, { direction: 'outgoing', protocol: 'llhls' })) ||
      (hls?.originMode === true && isGuarded(vhost, { direction: 'outgoing', protocol: 'hlsv3' })),
  );

/** Modules that can be configured but are not available: name, tests, consequence. */
const MODULES: readonly (readonly [name: string, places: Places, consequence?: string])[] = [
  [
    'OriginMode',
    { vhost: opensChildren },
    'limits access control to master playlists: everybody can load the chunklists and the media that they name',
  ],
  [
    'Playback of recordings as HLS',
    {
      application: (application) =>
        application.publishers.playback !== undefined &&
        playlistsOf(application).some(({ fileName }) => fileName === RECORDED),
    },
    `is not available: recorded.m3u8 is an output playlist with that FileName`,
  ],
  [
    'Schedule without MediaRootDir',
    { application: ({ providers }) => providers.schedule?.mediaRootDir === '' },
    'plays streams only: files of channels are below that folder',
  ],
  [
    'EnhancedBroadcasting without Modules/ERTMP',
    {
      server: ({ modules, virtualHosts }) =>
        !modules.ertmp.enable &&
        virtualHosts.some(({ applications }) =>
          applications.some(({ providers }) => providers.rtmp?.enhancedBroadcasting !== undefined),
        ),
    },
    'asks encoders for the first video alone',
  ],
  ['FILE provider', { application: ({ providers }) => providers.file }],
  ['DelayBufferTimeMs of all Publishers together', { application: ({ publishers }) => publishers.delayBufferTimeMs }],
  ['Ulpfec', { application: ({ publishers }) => publishers.webrtc?.ulpfec }],
  [
    'TcpRelay',
    {
      server: ({ bind: { providers, publishers } }) => lacksSecret(providers.webrtc) || lacksSecret(publishers.webrtc),
    },
    'is not offered to clients: it needs a TcpRelaySecret that the relay shares',
  ],
  [
    'Subtitles in OutputProfiles/MediaOptions',
    { application: ({ outputProfiles }) => outputProfiles.mediaOptions?.subtitles },
    'moved to the application: write Subtitles there, which counts where both are',
  ],
  [
    'Encodes/Data',
    { application: (application) => profilesOf(application).some(({ encodes }) => encodes.data.length > 0) },
  ],
  ['STT', { application: ({ outputProfiles }) => outputProfiles.mediaOptions?.stt?.enable }],
  ['P2P', { server: ({ modules }) => modules.p2p.enable }],
  ['Recovery', { server: ({ modules }) => modules.recovery.enable }],
  ['Whisper', { server: ({ modules }) => modules.whisper }],
];

/** Warnings about modules in a Server.xml that are not available, one line each. */
export function pendingModules(server: ServerConfig): string[] {
  const vhosts = server.virtualHosts;
  return lines({ servers: [server], vhosts, applications: vhosts.flatMap(({ applications }) => applications) });
}

/** Warnings as of `pendingModules`, for a virtual host with its applications. */
export function pendingInVhost(vhost: VirtualHostConfig): string[] {
  return lines({ servers: [], vhosts: [vhost], applications: vhost.applications });
}

/** Warnings as of `pendingModules`. @param vhost of the application; undefined: one without settings of its own */
export function pendingInApplication(application: ApplicationConfig, vhost?: VirtualHostConfig): string[] {
  const applications = [application];
  return lines({ servers: [], vhosts: vhost === undefined ? [] : [{ ...vhost, applications }], applications });
}

function lines({ servers, vhosts, applications }: Configured): string[] {
  const besideDrm = applications.flatMap(clearBesideDrm);
  const modules = MODULES.flatMap(([name, { server, vhost, application }, consequence = NO_EFFECT]) => {
    const configured =
      (server && servers.some(server)) ||
      (vhost && vhosts.some(vhost)) ||
      (application && applications.some(application));
    return configured ? [`${name} ${consequence}`] : [];
  });
  return [...modules, ...besideDrm];
}
