import Type from 'typebox';
import {
  atLeastOne,
  choice,
  contained,
  flag,
  integer,
  optional,
  parsed,
  repeated,
  section,
  text,
  type Fail,
} from '../blocks.ts';
import { unique } from '../rules.ts';
import { parseEndpoint } from '../values.ts';
import { Application } from './application.ts';
import { enables, hostNames, httpUrl, httpUrls, objectName, tls } from './shared.ts';

const SignedPolicy = optional({
  policyQueryKeyName: text(),
  signatureQueryKeyName: text(),
  secretKey: text(),
  /** Hash of the signatures: OvenMediaEngine knows SHA-1 only. */
  algorithm: choice(['sha1', 'sha256'], 'sha1'),
  enables: enables(),
});

interface JwtValues {
  readonly jwksUrl?: URL;
  readonly keyFile?: string;
  readonly secretKey?: string;
  enables?: { providers: string; publishers: string };
}

/** Modules whose clients can send a token. */
const TOKEN_PROVIDERS = ['rtmp', 'webrtc', 'srt', 'rtsp'];
const TOKEN_PUBLISHERS = ['webrtc', 'llhls', 'hlsv3', 'playback', 'thumbnail', 'srt', 'ovt', 'rtsp', 'rtmp', 'flv'];

/** A module that no client comes by would guard nothing. */
function known(names = '', modules: readonly string[], fail: (text: string) => void): void {
  const unknown = names.split(',').filter((name) => name.trim() !== '' && !modules.includes(name.trim().toLowerCase()));
  if (unknown.length > 0) fail(`has ${unknown.join(', ')}, which is none of ${modules.join(', ')}`);
}

/** Checks of signed tokens (RFC 7519), with keys from one of the first three elements. */
const Jwt = optional(
  {
    jwksUrl: Type.Optional(httpUrl()),
    keyFile: Type.Optional(text()),
    /** HS256 needs 32 bytes (RFC 7518 section 3.2). */
    secretKey: Type.Optional(text({ is: 'a text of at least 32 characters', pattern: '^.{32,}$' })),
    issuer: Type.Optional(text()),
    audience: Type.Optional(text()),
    queryKeyName: text({ default: 'token' }),
    keepKeys: integer(86_400_000, { min: 60_000 }),
    enables: enables(),
  },
  {
    complete: (jwt: JwtValues) => {
      jwt.enables ??= { providers: TOKEN_PROVIDERS.join(','), publishers: TOKEN_PUBLISHERS.join(',') };
    },
    rule: ({ jwksUrl, keyFile, secretKey, enables }: JwtValues, fail: Fail) => {
      const given = [jwksUrl, keyFile, secretKey].filter((source) => source !== undefined);
      if (given.length !== 1) fail([], 'needs JWKSUrl, KeyFile or SecretKey, and one of them alone');
      known(enables?.providers, TOKEN_PROVIDERS, (text) => fail(['enables', 'providers'], text));
      known(enables?.publishers, TOKEN_PUBLISHERS, (text) => fail(['enables', 'publishers'], text));
    },
  },
);

const MIN_RECHECK_MS = 1000;

const AdmissionWebhooks = optional(
  {
    /** URLs with commas between them: asked in this order until one answers. */
    controlServerUrl: httpUrls(),
    secretKey: Type.Optional(text()),
    timeout: integer(3000, { min: 1, max: 600_000 }),
    /** Milliseconds between two calls about a running session; 0: it is asked about once. */
    recheckInterval: integer(0, { min: 0, max: 86_400_000 }),
    enables: enables(),
  },
  {
    rule: ({ recheckInterval }: { readonly recheckInterval: number }, fail: Fail) => {
      if (recheckInterval !== 0 && recheckInterval < MIN_RECHECK_MS)
        fail(['recheckInterval'], `is 0, or ${MIN_RECHECK_MS} at least`);
    },
  },
);

const Origin = Type.Object(
  {
    location: text(),
    pass: Type.Object({
      scheme: choice(['ovt', 'rtsp', 'rtspc', 'rtmp', 'rtmps', 'srt', 'http', 'https', 'whep', 'wheps', 'udp']),
      urls: Type.Object({ url: atLeastOne(repeated(text())) }),
      forwardQueryParams: flag(true),
    }),
    persistent: flag(false),
    failback: flag(false),
    strictLocation: flag(false),
    /** Passes streams on without transcoding: by default for OVT only. */
    relay: Type.Optional(flag()),
    ignoreRtcpSRTimestamp: flag(false),
  },
  {
    complete: (origin: { relay?: boolean; pass: { scheme: string } }) => {
      origin.relay ??= origin.pass.scheme === 'ovt';
    },
  },
);

const Origins = optional({
  properties: section({
    noInputFailoverTimeout: integer(3000),
    unusedStreamDeletionTimeout: integer(60_000),
    streamFailbackTimeout: integer(3000),
    retryCount: integer(0),
  }),
  origin: repeated(Origin),
});

/** Kept as text: the management API shows it. */
const hostAndPort = () => parsed('a host:port', (given) => (parseEndpoint(given) ? given : undefined));

const OriginMapStore = optional({
  redisServer: Type.Object({ host: hostAndPort(), auth: Type.Optional(text()) }),
  originHostName: Type.Optional(text()),
});

interface WithControls {
  readonly signedPolicy?: { readonly policyQueryKeyName: string; readonly signatureQueryKeyName: string };
  readonly jwt?: { readonly queryKeyName: string };
}

export const VirtualHost = Type.Object(
  {
    name: objectName(),
    distribution: text({ default: 'ovenmediaengine.com', shown: true }),
    host: Type.Object({ names: hostNames(), tls: tls() }),
    signedPolicy: SignedPolicy,
    jwt: Jwt,
    admissionWebhooks: AdmissionWebhooks,
    origins: Origins,
    originMapStore: OriginMapStore,
    applications: contained(Application, 'Application', {
      rule: (applications: { name: string }[], fail: Fail) => unique(applications, 'name', [], fail),
    }),
  },
  {
    rule: ({ signedPolicy, jwt }: WithControls, fail: Fail) => {
      if (signedPolicy === undefined || jwt === undefined) return;
      const { policyQueryKeyName, signatureQueryKeyName } = signedPolicy;
      if ([policyQueryKeyName, signatureQueryKeyName].includes(jwt.queryKeyName))
        fail(['jwt', 'queryKeyName'], 'is a name that SignedPolicy has for something else');
    },
  },
);
