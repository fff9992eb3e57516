import type { Client } from '../access/request.ts';
import { Limits } from '../access/limits.ts';
import { isGuarded } from '../config/enables.ts';
import type { Application } from '../core/application.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { hidesStreams } from './streams.ts';

interface Ports {
  readonly port?: number;
  readonly tlsPort?: number;
}

/** Where publishers connect to this node; absent: they cannot by that protocol. */
export interface PublishPorts {
  readonly rtmp?: Ports;
  readonly srt?: number;
  readonly whip?: Ports;
}

/** Applications in one answer. */
const MAX_LISTED = 20;

/** An application that takes streams, and the addresses that a stream's name makes whole. */
interface PublishPlace {
  readonly app: string;
  /** `rtmp://host/app`: what encoders call the server; the stream's name is the stream key. */
  readonly rtmp: readonly string[];
  /** `srt://host:9999?streamid=default/app`, `/` and the name follow. */
  readonly srt?: string;
  /** `http://host:3333/app`, `/`, the name and `?direction=whip` follow. */
  readonly whip?: string;
}

/** Addresses for clients that may publish without a signed URL and without an admission webhook. */
export interface PublishPlaces {
  /** Access control guards viewers, or publishers by some protocol: those addresses are left out. */
  readonly restricted: boolean;
  readonly applications: readonly PublishPlace[];
}

const limits = new Limits();

/**
 * Where `client` may publish to a virtual host, at the name by which it called. What access control guards is left out, and
 * so are applications whose `Limits` reject the client's network.
 * @param host as in a URL, without a port
 */
export function publishPlaces(vhost: VirtualHost, host: string, ports: PublishPorts, client: Client): PublishPlaces {
  if (hidesStreams(vhost)) return { restricted: true, applications: [] };
  const places: PublishPlace[] = [];
  const open = (protocol: 'rtmp' | 'srt' | 'webrtc'): boolean =>
    !isGuarded(vhost.config, { direction: 'incoming', protocol });
  let restricted = false;
  for (const application of vhost.applications.values()) {
    if (places.length === MAX_LISTED) break;
    const { providers } = application.config;
    const takes = (protocol: 'rtmp' | 'srt' | 'webrtc', has: unknown): boolean => {
      if (providers[protocol] === undefined || has === undefined) return false;
      if (!open(protocol)) restricted = true;
      return open(protocol) && mayCome(application, protocol, client);
    };
    const app = encodeURIComponent(application.name);
    const place = {
      app: application.name,
      rtmp: takes('rtmp', ports.rtmp) ? rtmpOrigins(host, ports.rtmp ?? {}).map((at) => `${at}/${app}`) : [],
      ...(takes('srt', ports.srt) && {
        srt: `srt://${host}:${ports.srt}?streamid=${encodeURIComponent(vhost.name)}/${app}`,
      }),
      ...(takes('webrtc', ports.whip) && { whip: `${origins('http', host, ports.whip, [80, 443])[0]}/${app}` }),
    };
    if (place.rtmp.length > 0 || place.srt !== undefined || place.whip !== undefined) places.push(place);
  }
  return { restricted, applications: places };
}

function mayCome(application: Application, protocol: 'rtmp' | 'srt' | 'webrtc', client: Client): boolean {
  try {
    limits.check({ direction: 'incoming', protocol, client }, application.vhost, application.name);
    return true;
  } catch {
    // it is only asked for: the attempt of a publisher would be logged
    return false;
  }
}

/** `rtmp://host` and `rtmps://host`, as far as there are such ports. @param host as in a URL, without a port */
export function rtmpOrigins(host: string, ports: Ports): string[] {
  return origins('rtmp', host, ports, [1935, 443]);
}

/** The plain one first. @param usual ports that a URL need not name */
function origins(
  scheme: 'rtmp' | 'http',
  host: string,
  { port, tlsPort }: Ports = {},
  usual: readonly [number, number],
): string[] {
  const origin = (secure: '' | 's', number: number | undefined): string[] =>
    number === undefined
      ? []
      : [`${scheme}${secure}://${host}${number === usual[secure === '' ? 0 : 1] ? '' : `:${number}`}`];
  return [...origin('', port), ...origin('s', tlsPort)];
}
