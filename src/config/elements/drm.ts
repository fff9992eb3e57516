import Type from 'typebox';
import { choice, flag, integer, optional, parsed, repeated, text, type Fail } from '../blocks.ts';
import { parseUrl } from '../values.ts';

/** Key systems that a key server can be asked for. */
const DRM_SYSTEMS = ['Widevine', 'PlayReady', 'FairPlay'] as const;
export type DrmSystem = (typeof DRM_SYSTEMS)[number];

/** Elements for the key server of OvenMediaEngine before 0.21. */
const FORMER_DRM = new Map([
  ['DRMProvider', 'write KeyServer for a key server, or InfoFile for keys in a file'],
  ['DRMSystem', 'write Systems into KeyServer'],
  ['KMSUrl', 'write Url into KeyServer, with the token at its end'],
  ['KMSToken', 'write it at the end of Url in KeyServer'],
  ['ContentId', 'write ContentId into KeyServer'],
]);

/** Reads the names of key systems, in the spelling and the order of `DRM_SYSTEMS`; undefined for a text that has others, or none. */
export function systemsIn(given: string): readonly DrmSystem[] | undefined {
  const names = given.split(',').map((name) => name.trim().toLowerCase());
  const systems = DRM_SYSTEMS.filter((system) => names.includes(system.toLowerCase()));
  return systems.length === names.length ? systems : undefined;
}

function parseFingerprint(given: string): string | undefined {
  const digits = given.replaceAll(':', '').toLowerCase();
  return /^[0-9a-f]{64}$/.test(digits) ? digits : undefined;
}

interface KeyServerValues {
  readonly userName?: string;
  readonly password?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  readonly systems: string;
  readonly cencProtectScheme: string;
}

/** Text of a header field as it is. */
const PRINTABLE = '^[\\x21-\\x7e]+$';

const KeyServer = Type.Object(
  {
    /** Names of streams, with `*` and `?`. */
    streamName: text({ default: '*' }),
    url: parsed('an https URL', (given) => parseUrl(given, ['https'])),
    /** Basic credentials. */
    userName: Type.Optional(text()),
    password: Type.Optional(text()),
    /** Keys of a Signature Version 4. */
    accessKeyId: Type.Optional(text({ pattern: PRINTABLE })),
    secretAccessKey: Type.Optional(text()),
    region: text({ default: 'us-east-1', pattern: PRINTABLE }),
    service: text({ default: 'execute-api', pattern: PRINTABLE }),
    certificateFingerprint: Type.Optional(
      parsed('a SHA-256 of a certificate: 64 hexadecimal digits', parseFingerprint),
    ),
    contentId: text({ default: '${VHostName}_${AppName}_${StreamName}' }),
    /** Kept as text: the management API shows it. */
    systems: parsed(`a list of ${DRM_SYSTEMS.join(', ')}`, (given) => systemsIn(given)?.join(','), {
      default: 'Widevine,PlayReady',
    }),
    cencProtectScheme: choice(['cbcs', 'cenc'], 'cbcs'),
    /** Milliseconds for the connection, and then again for the answer. */
    timeout: integer(3000, { min: 1, max: 60_000 }),
    clearLead: flag(false),
  },
  {
    rule: (server: KeyServerValues, fail: Fail) => {
      const { userName, password, accessKeyId, secretAccessKey, systems, cencProtectScheme } = server;
      if ((userName === undefined) !== (password === undefined)) fail(['userName'], 'needs Password, and Password it');
      if ((accessKeyId === undefined) !== (secretAccessKey === undefined))
        fail(['accessKeyId'], 'needs SecretAccessKey, and SecretAccessKey it');
      if (userName !== undefined && accessKeyId !== undefined)
        fail(['userName'], 'cannot be combined with AccessKeyId: a request has one kind of credentials');
      if (cencProtectScheme === 'cenc' && systems.includes('FairPlay'))
        fail(['systems'], 'has FairPlay, which needs cbcs: it cannot be used with cenc');
    },
  },
);

interface DrmValues {
  readonly enable: boolean;
  readonly infoFile: string;
  readonly keyServer: readonly unknown[];
}

/** Encryption of LL-HLS. */
export const Drm = optional(
  {
    enable: flag(false),
    infoFile: text({ default: '' }),
    keyServer: repeated(KeyServer),
    /** Seconds; 0: on request only. */
    keyRotationPeriod: integer(0, { max: 366 * 86_400 }),
    refuseClear: flag(false),
  },
  {
    former: FORMER_DRM,
    rule: ({ enable, infoFile, keyServer }: DrmValues, fail: Fail) => {
      if (enable && infoFile === '' && keyServer.length === 0) fail(['infoFile'], 'is missing, and so is KeyServer');
      if (infoFile !== '' && keyServer.length > 0) fail(['keyServer'], 'cannot be combined with InfoFile');
    },
  },
);
