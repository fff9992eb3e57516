import { createHmac, randomBytes } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import type { Cluster } from '#cluster';
import { CertificateStore } from './access/certificates.ts';
import { apiRoutes } from './api/app.ts';
import { PeerApi } from './api/peer.ts';
import { StreamOwners } from './api/stream-owner.ts';
import { StreamSessions } from './api/stream-sessions.ts';
import type { ServerConfig } from './config/model.ts';
import type { IceCandidate } from './config/values.ts';
import type { FindOutput } from './core/find-output.ts';
import { Registry } from './core/registry.ts';
import { emptied } from './drain.ts';
import { configHash, joinCluster } from './join-cluster.ts';
import type { Logger } from './log.ts';
import { DynamicConfig } from './management/dynamic-config.ts';
import { IdleApplications } from './management/idle-applications.ts';
import { NodeReport } from './management/node-report.ts';
import { openNeighbours, type Neighbours } from './neighbours.ts';
import { blockList } from './networks.ts';
import type { SessionNames } from './origins/session-names.ts';
import type { StreamNames } from './origins/stream-names.ts';
import { PortTable } from './port-table.ts';
import { RtmpServer } from './providers/rtmp/server.ts';
import { LlhlsPublisher } from './publishers/llhls/index.ts';
import { RelaySource } from './publishers/ovt/relay-source.ts';
import { OvtServer } from './publishers/ovt/server.ts';
import { ThumbnailPublisher } from './publishers/thumbnail/index.ts';
import { WebrtcPublisher } from './publishers/webrtc/index.ts';
import { WhepNeighbours } from './publishers/webrtc/whep-neighbours.ts';
import { SharedStatistics } from './stats/shared-statistics.ts';
import { clientAddresses, type Addresses, type HttpPorts } from './summary.ts';
import { CodecInventory } from './transcode/codecs.ts';
import { attachOutputs } from './transcode/outputs.ts';
import type { Version } from './version.ts';
import { healthRoutes, type Readiness } from './web/health.ts';
import { createHttpPort } from './web/http-port.ts';
import { LiveStreams } from './web/live-streams.ts';
import { pagesRoutes } from './web/pages.ts';

export interface ServerOptions {
  readonly version: Version;
  readonly log: Logger;
  /** What relative paths of certificates and overlays start from. */
  readonly folder: string;
  /** File that keeps what the management API creates. */
  readonly storageFile: string;
  /** Another process goes by this node's id, and has its place in the cluster. */
  readonly onReplaced: () => void;
}

const STOPPED = 'the server is stopping';

/**
 * One running node: builds its parts from the configuration, viewers' side first. Stops in the opposite order,
 * so that whoever is connected is told why before the port goes.
 */
export class Server {
  readonly registry = new Registry();
  readonly #config: ServerConfig;
  readonly #options: ServerOptions;
  readonly #certificates: CertificateStore;
  readonly #inventory: CodecInventory;
  readonly #providers: Part[] = [];
  readonly #publishers: Part[] = [];
  readonly #ports: Part[] = [];
  /** What serves all of these, on top of the cluster. */
  readonly #parts: Part[] = [];
  #addresses: Addresses = { ice: [] };
  /** Why this node is not ready, whatever the cluster says. */
  #unready: string | undefined = 'starting';
  #cluster: Cluster | undefined;
  /** It drains in order to stop: no going back. */
  #leaving = false;
  #closed: Promise<void> | undefined;

  /**
   * @throws what kept a part from starting, such as an address in use; what had started is stopped again
   */
  static async start(config: ServerConfig, options: ServerOptions): Promise<Server> {
    const server = new Server(config, options);
    try {
      await server.#start();
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  private constructor(config: ServerConfig, options: ServerOptions) {
    this.#config = config;
    this.#options = options;
    this.#certificates = new CertificateStore(options);
    this.#inventory = new CodecInventory(options);
  }

  /** Where the parts listen. */
  get addresses(): Addresses {
    return this.#addresses;
  }

  /**
   * Takes no new publishers, hands over what others can go on with, and waits for the streams that stay to leave, until
   * Cluster/Node/DrainTimeout at most. A server that is alone has nobody to hand over to: it waits for nothing.
   * @param signal ends the wait
   */
  async drain(signal: AbortSignal): Promise<void> {
    const { cluster: config } = this.#config;
    const cluster = this.#cluster;
    if (config === undefined || cluster === undefined || config.node.drainTimeout === 0) return;
    this.#leaving = true;
    this.registry.draining = true;
    await cluster.drain(cluster.self.id).catch((error: Error) => {
      // nothing can be handed over then: streams may leave all the same
      this.#options.log.warn({ reason: error.message }, 'the cluster cannot be told that this node drains');
    });
    await emptied(this.registry, AbortSignal.any([signal, AbortSignal.timeout(config.node.drainTimeout)]));
  }

  /** Takes no new clients, ends every stream and session, and frees every port. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#stop();
    return this.#closed;
  }

  async #start(): Promise<void> {
    const { registry } = this;
    const { log, folder } = this.#options;
    const { bind, modules, virtualHosts, defaults: { crossDomains } } = this.#config;
    const inventory = this.#inventory;
    registry.on('input', (input, application) => {
      input.on('fault', (err) => log.error({ err, stream: input.name }, 'a reader of an input stream failed'));
      if (!input.isPassthrough) attachOutputs(input, application, { log, inventory, folder });
    });
    registry.on('output', (output) => {
      output.on('fault', (err) => log.error({ err, stream: output.name }, 'a reader of an output stream failed'));
    });
    registry.on('alert', ({ code, description, application, stream }) => {
      log.error({ code, stream: `${application.internalName}/${stream}` }, description);
    });
    for (const vhost of virtualHosts) {
      registry.createVhost(vhost, true);
      await this.#certificates.load(vhost);
    }
    const cluster = await this.#joinCluster();
    const neighbours = openNeighbours({ config: this.#config, registry, cluster, log });
    const { names, sessionNames, directory, calls, others, tasks, find, bring } = neighbours;
    this.#providers.push(tasks);
    this.#parts.push(...neighbours.parts);
    const live = new LiveStreams({ registry, directory, others, calls });
    if (this.#config.cluster !== undefined) this.#publishers.push(new RelaySource({ registry, calls, log }));
    if (modules.dynamicAppRemoval.enable) this.#parts.push(new IdleApplications({ registry, log, inUse: (vhost, app) => directory.inUse(vhost, app) }));

    const { webrtc, thumbnail } = bind.publishers;
    const llhls = modules.llhls.enable ? bind.publishers.llhls : undefined;
    const ports = new PortTable();
    if (llhls !== undefined) {
      const publisher = new LlhlsPublisher({ registry, cluster, directory, calls, sessionNames, bring, log, tokenKey: this.#tokenKey(), crossDomains });
      this.#publishers.push(publisher);
      ports.add(llhls, publisher.routes, 'llhls');
    }
    if (webrtc !== undefined) {
      const publisher = await WebrtcPublisher.create({ registry, find, neighbours: new WhepNeighbours(cluster, calls), sessionNames, bind: webrtc, log, crossDomains });
      this.#publishers.push(publisher);
      ports.add(webrtc.signalling, publisher.routes, 'webrtc');
      this.#addresses = { ...this.#addresses, ice: webrtc.iceCandidates.iceCandidate.map(portsOf) };
    }
    if (thumbnail !== undefined) {
      const publisher = new ThumbnailPublisher({ registry, others, directory, calls, crossDomains });
      this.#publishers.push(publisher);
      ports.add(thumbnail, publisher.routes);
    }
    for (const { port, secure, routes, serves } of ports.list()) {
      const certificates = secure ? this.#certificates : undefined;
      await this.#listenHttp(port, [...routes, pagesRoutes({ registry, live, serves })], certificates);
    }
    await this.#startOvt(find, sessionNames);
    await this.#startApi(neighbours);
    await this.#startRtmp(names);
    tasks.start();
    this.#addresses = {
      ...this.#addresses,
      ...(llhls !== undefined && { llhls: pair(llhls) }),
      ...(webrtc !== undefined && { webrtc: pair(webrtc.signalling) }),
    };
    if (ports.list().some(({ secure }) => secure) && this.#certificates.initial === undefined) {
      log.warn('no virtual host has a certificate: TLS ports of publishers refuse every connection until one has');
    }
    this.#parts.push(new NodeReport({
      cluster, registry, log,
      facts: {
        version: this.#options.version.version,
        addresses: clientAddresses(this.#config, this.#addresses),
        configHash: configHash(this.#config),
      },
    }));
    this.#unready = undefined;
  }

  async #startOvt(find: FindOutput, sessionNames: SessionNames): Promise<void> {
    const { bind: { publishers: { ovt } }, ip, modules } = this.#config;
    if (ovt?.port === undefined) return;
    for (const host of ip) {
      this.#publishers.push(await OvtServer.listen({
        registry: this.registry,
        find,
        sessionNames,
        log: this.#options.log,
        host,
        port: ovt.port,
        proxyNetworks: blockList(modules.proxyProtocol?.networks),
        networks: blockList(ovt.networks),
      }));
    }
    this.#addresses = { ...this.#addresses, ovt: ovt.port };
  }

  async #joinCluster(): Promise<Cluster> {
    const { log } = this.#options;
    const cluster = await joinCluster(this.#config, this.#options);
    this.#cluster = cluster;
    const tell = (): void => {
      const { id } = cluster.self;
      if (cluster.state === 'connected') log.info({ node: id }, 'connected to the cluster');
      else log.error({ node: id }, 'the store of the cluster cannot be reached: this node goes on with what it has');
    };
    if (this.#config.cluster !== undefined) tell();
    cluster.events.on('state', tell);
    this.registry.draining = cluster.draining;
    cluster.events.on('drain', (draining) => {
      if (this.#leaving) return;
      this.registry.draining = draining;
      log.warn(draining ? 'draining: this node takes no new streams' : 'this node takes streams again');
    });
    cluster.events.on('replaced', this.#options.onReplaced);
    return cluster;
  }

  get #readiness(): Readiness {
    if (this.#unready !== undefined) return { ready: false, reason: this.#unready };
    if (this.#leaving || this.#cluster?.draining) return { ready: false, reason: 'draining' };
    if (this.#cluster?.state === 'degraded') return { ready: true, degraded: 'the store of the cluster cannot be reached' };
    return { ready: true };
  }

  /** What session tokens are made with: the same on all nodes of a cluster, and another at each start of one alone. */
  #tokenKey(): Buffer {
    const { cluster } = this.#config;
    return cluster === undefined ? randomBytes(32) : createHmac('sha256', cluster.secret).update('LL-HLS sessions').digest();
  }

  async #startApi({ cluster, names, directory, calls, others, pulls }: Neighbours): Promise<void> {
    const { registry } = this;
    const { log, version } = this.#options;
    const dynamic = new DynamicConfig({ registry, cluster, certificates: this.#certificates, log });
    this.#parts.push(dynamic);
    await dynamic.restore();
    const { managers, bind, defaults, modules } = this.#config;
    const { api } = bind.managers;
    const own = new CertificateStore(this.#options);
    const { host } = managers ?? {};
    const reloadApi = host === undefined || api?.tlsPort === undefined ? undefined : () => own.load({ name: 'Managers', host });
    await reloadApi?.();
    const isAlone = this.#config.cluster === undefined;
    const shared = isAlone ? undefined : new SharedStatistics({ cluster, registry });
    if (shared !== undefined) this.#parts.push(shared);
    const resources = {
      registry, version, cluster, directory, pulls, dynamic, shared, codecs: this.#inventory,
      certificates: { vhosts: this.#certificates, reloadApi },
      sessions: new StreamSessions(registry, others, calls),
    };
    if (!isAlone) this.#parts.push(await PeerApi.open(resources, calls, log));
    if (managers === undefined || api === undefined) return;
    const { accessToken, crossDomains = defaults.crossDomains } = managers.api;
    const config = { accessToken, crossDomains, hostNames: managers.host.names, etag: modules.etag.enable };
    const owners = new StreamOwners({ registry, cluster, names, directory, log });
    const routes = [apiRoutes({ ...resources, others: isAlone ? undefined : others, config, owners })];
    if (api.port !== undefined) await this.#listenHttp(api.port, routes);
    if (api.tlsPort !== undefined) await this.#listenHttp(api.tlsPort, routes, own);
    this.#addresses = { ...this.#addresses, api: pair(api) };
  }

  /** Publishers are let in last: whatever they bring finds its viewers' side complete. */
  async #startRtmp(names: StreamNames): Promise<void> {
    const { bind, ip, modules } = this.#config;
    const port = bind.providers.rtmp?.port;
    if (port === undefined) return;
    for (const host of ip) {
      const rtmp = await RtmpServer.listen({
        registry: this.registry,
        names,
        log: this.#options.log,
        host,
        port,
        proxyNetworks: blockList(modules.proxyProtocol?.networks),
        extended: modules.ertmp.enable,
      });
      this.#providers.push(rtmp);
    }
    this.#addresses = { ...this.#addresses, rtmp: port };
  }

  /** @param certificates makes it a TLS port */
  async #listenHttp(
    port: number,
    routes: readonly FastifyPluginAsync[],
    certificates?: CertificateStore,
  ): Promise<void> {
    const { modules, ip } = this.#config;
    const http = createHttpPort({
      proxyNetworks: blockList(modules.proxyProtocol?.networks),
      forwardedNetworks: blockList(modules.forwardedFor?.networks),
      tls: certificates && { certificates, http2: modules.http2.enable },
      log: this.#options.log,
    });
    this.#ports.push(http);
    await http.app.register(healthRoutes(() => this.#readiness));
    for (const plugin of routes) await http.app.register(plugin);
    await http.listen(ip, port);
  }

  async #stop(): Promise<void> {
    this.#unready = 'stopping';
    await closeAll(this.#providers);
    this.registry.close(STOPPED);
    await closeAll(this.#publishers);
    await closeAll(this.#ports);
    await closeAll(this.#parts);
    await this.#cluster?.close();
  }
}

interface Part {
  close(): Promise<void> | void;
}

async function closeAll(parts: readonly Part[]): Promise<void> {
  await Promise.all(parts.map((part) => part.close()));
}

function pair({ port, tlsPort }: HttpPorts): HttpPorts {
  return { port, tlsPort };
}

function portsOf({ first, last, protocol }: IceCandidate): string {
  return first === last ? `${first}/${protocol}` : `${first}-${last}/${protocol}`;
}
