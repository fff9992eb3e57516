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
import { enables, hostNames, httpUrls, objectName, tls } from './shared.ts';

const SignedPolicy = optional({
  policyQueryKeyName: text(),
  signatureQueryKeyName: text(),
  secretKey: text(),
  /** Hash of the signatures: OvenMediaEngine knows SHA-1 only. */
  algorithm: choice(['sha1', 'sha256'], 'sha1'),
  enables: enables(),
});

const AdmissionWebhooks = optional({
  /** URLs with commas between them: asked in this order until one answers. */
  controlServerUrl: httpUrls(),
  secretKey: Type.Optional(text()),
  timeout: integer(3000, { min: 1, max: 600_000 }),
  enables: enables(),
});

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

export const VirtualHost = Type.Object({
  name: objectName(),
  distribution: text({ default: 'ovenmediaengine.com', shown: true }),
  host: Type.Object({ names: hostNames(), tls: tls() }),
  signedPolicy: SignedPolicy,
  admissionWebhooks: AdmissionWebhooks,
  origins: Origins,
  originMapStore: OriginMapStore,
  applications: contained(Application, 'Application', {
    rule: (applications: { name: string }[], fail: Fail) => unique(applications, 'name', [], fail),
  }),
});
