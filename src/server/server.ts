import { dirname, join } from 'node:path';
import type { Cluster } from '#cluster';
import { Alerts, logAlerts } from '../alerts/index.ts';
import { KeyFrameWatch } from '../alerts/key-frame-watch.ts';
import { CertificateStore } from '../tls/certificates.ts';
import { configHashes } from '../config/config-hash.ts';
import type { ServerConfig } from '../config/model.ts';
import { withoutAddresses } from '../core/privacy.ts';
import { diskCalls } from '../core/disk-calls.ts';
import { Registry } from '../core/registry.ts';
import type { ListenerContext, OpenListeners } from './listeners.ts';
import { openConfigured } from './configured.ts';
import { emptied, HandedOver } from './drain.ts';
import { joinCluster } from './join-cluster.ts';
import type { Logger } from '../log/log.ts';
import { IdleApplications } from '../management/idle-applications.ts';
import { listenAgentCheck, type AgentState } from '../management/agent-check.ts';
import { NodeReport } from '../management/node-report.ts';
import { openMetrics, type MetricsOptions } from './metrics.ts';
import { openApi, type ApiContext, type ApiListener } from './open-api.ts';
import { PROVIDERS } from './open-providers.ts';
import { PUBLISHERS } from './open-publishers.ts';
import { openAdmission, type AdmissionServices } from './admission.ts';
import { closeAll, type Closable } from './closable.ts';
import { openCluster, type ClusterServices } from './cluster.ts';
import { HttpPorts } from './http-ports.ts';
import { PortTable } from './port-table.ts';
import type { PlaylistPublisher } from '../publishers/hls/publisher.ts';
import type { ThumbnailPublisher } from '../publishers/thumbnail/index.ts';
import type { RecentEvents } from '../log/recent-events.ts';
import { readinessOf } from './readiness.ts';
import { openRecording } from './recording.ts';
import { EventGenerator } from '../events-from-files/index.ts';
import { logDisks } from './disk-log.ts';
import { logStreams } from './stream-log.ts';
import type { Addresses } from './addresses.ts';
import { openPushing } from './pushing.ts';
import { openStreams, type StreamServices } from './streams.ts';
import { clientAddresses } from './summary.ts';
import { openTasks, type TaskServices } from './tasks.ts';
import { CodecInventory } from '../transcode/codecs.ts';
import { attachOutputs } from '../transcode/outputs.ts';
import { QualityReports } from '../quality/quality-reports.ts';
import type { Version } from '../version.ts';
import { openWebrtcMedia, type WebrtcMedia } from './webrtc-media.ts';
import { checkWorkerProgram } from '../webrtc/worker-program.ts';
import { apiHomeRoutes } from '../web/api-home.ts';
import type { Readiness } from '../web/health.ts';
import { LiveStreams } from '../web/live-streams.ts';
import { metricsRoutes } from '../web/metrics.ts';
import type { AlertCounts } from '../stats/metrics/alerts.ts';
import { StoreCounts } from '../stats/metrics/store-counts.ts';
import { Queues } from '../stats/queues.ts';
import { clientConfigurationRoutes } from '../web/client-configuration.ts';
import { pagesRoutes } from '../web/pages.ts';

export interface ServerOptions {
  readonly version: Version;
  readonly log: Logger;
  /** Recent events of the log, for the API. */
  readonly recentEvents: RecentEvents;
  /** Base of relative paths of certificates, overlays and stream maps. */
  readonly folder: string;
  readonly storageFile: string;
  /** Called when another process took this node's id and place in the cluster. */
  readonly onReplaced: () => void;
}

/** Services that the components of a node are built on. */
interface Services {
  readonly nodes: ClusterServices;
  readonly work: TaskServices;
  readonly streams: StreamServices;
  readonly admission: AdmissionServices;
  readonly http: HttpPorts;
}

const STOPPED = 'the server is stopping';

/**
 * One running node: builds its components from the configuration, publishers before providers. Stops in reverse
 * order, so that connected clients learn the reason before the port closes.
 */
export class Server {
  readonly registry = new Registry();
  readonly #config: ServerConfig;
  readonly #options: ServerOptions;
  readonly #certificates: CertificateStore;
  readonly #providers: Closable[] = [];
  readonly #publishers: Closable[] = [];
  readonly #playlists: PlaylistPublisher[] = [];
  #thumbnails: ThumbnailPublisher | undefined;
  readonly #ports: Closable[] = [];
  /** Components that serve providers and publishers, on top of the cluster. */
  readonly #components: Closable[] = [];
  #addresses: Addresses = { ice: [] };
  #webrtc: WebrtcMedia | undefined;
  #report: NodeReport | undefined;
  /** Reason why this node is not ready, apart from the cluster. */
  #unready: string | undefined = 'starting';
  readonly #store = new StoreCounts();
  readonly #quality = new QualityReports();
  #cluster: Cluster | undefined;
  #directory: ClusterServices['directory'] | undefined;
  /** Draining in order to stop, which cannot be undone. */
  #leaving = false;
  #unwatchDisks: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  /**
   * @throws errors that keep a component from starting, such as an address in use; those already started are stopped
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
    const { log } = options;
    this.#options = config.privacyProtection ? { ...options, log: withoutAddresses(log) } : options;
    this.#certificates = new CertificateStore(this.#options);
  }

  get addresses(): Addresses {
    return this.#addresses;
  }

  /**
   * Stops accepting publishers, hands over streams that other nodes can continue, and waits for the other streams to
   * end, at most Cluster/Node/DrainTimeout. A single server waits for nothing, as it cannot hand over.
   * @param signal ends the wait
   */
  async drain(signal: AbortSignal): Promise<void> {
    const { cluster: config } = this.#config;
    if (config === undefined || config.node.drainTimeout === 0) return;
    this.#leaving = true;
    this.registry.draining = true;
    const handedOver = this.#directory && new HandedOver(this.registry, this.#directory);
    void this.#cluster?.retire();
    const late = AbortSignal.any([signal, AbortSignal.timeout(config.node.drainTimeout)]);
    await emptied(this.registry, late);
    await handedOver?.settled(late);
  }

  /** Accepts no new clients, ends every stream and session, and frees every port. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#stop();
    return this.#closed;
  }

  async #start(): Promise<void> {
    this.#unwatchDisks = logDisks(diskCalls, this.#options.log);
    const inventory = new CodecInventory(this.#options);
    const raised = this.#watchStreams(inventory);
    await this.#createVhosts();
    const cluster = await this.#joinCluster();
    const queues = new Queues(this.registry);
    this.#components.push(queues);
    const alerts = this.#startAlerts(cluster.self.id, queues);
    const services = this.#openServices(cluster, inventory);
    const work = await this.#openWork(services);
    const webrtc = await this.#openWebrtc(services);
    const { version, recentEvents, folder, log } = this.#options;
    const context = {
      config: this.#config,
      registry: this.registry,
      ...services,
      certificates: this.#certificates,
      webrtc,
      onDumped: work.onDumped,
      recordings: work.recordings,
      stored: work.stored,
      quality: this.#quality,
      playlists: this.#playlists,
      folder,
      rewindFolder: join(dirname(this.#options.storageFile), `rewind-${encodeURIComponent(cluster.self.id)}`),
      log,
    };
    const ports = new PortTable();
    await this.#open(PUBLISHERS, context, this.#publishers, ports);
    const metrics = await this.#startMetrics(services.http, {
      ...services,
      registry: this.registry,
      tasks: services.work.tasks,
      store: this.#store,
      encoders: inventory.runs,
      mediaWorkers: webrtc?.pool,
      playlists: this.#playlists,
      quality: this.#quality,
      recordings: work.kept,
      alerts: { raised, undelivered: () => alerts?.undelivered ?? 0 },
      version,
    });
    const api = await this.#openApi({
      ...context,
      ...metrics,
      codecs: inventory,
      records: work.records,
      queues,
      revocations: services.admission.access.revocations,
      thumbnails: this.#thumbnails,
      version,
      recentEvents,
      folder,
    });
    // what follows streams is there: publishers come back while the routes of HTTP are made
    await this.#open(PROVIDERS, context, this.#providers, ports);
    const checks = Promise.allSettled(webrtc === undefined ? [] : [checkWorkerProgram()]);
    if (api !== undefined) await this.#startApi(services.http, api);
    await this.#startHttp(ports, services, webrtc);
    for (const check of await checks) if (check.status === 'rejected') throw check.reason;
    work.start();
    await this.#startReport(cluster);
    this.#unready = undefined;
  }

  /** Logs streams, attaches outputs to those that come, and raises alerts. @returns counts of alerts */
  #watchStreams(inventory: CodecInventory): AlertCounts['raised'] {
    const { registry } = this;
    const { log, folder } = this.#options;
    logStreams(registry, log);
    const raised = logAlerts(registry, log);
    this.#components.push(new KeyFrameWatch(registry));
    this.#components.push(new EventGenerator({ registry, folder, log: log.child({ module: 'events' }) }));
    registry.on('input', (input, application) => {
      if (!input.isPassthrough) attachOutputs(input, application, { log, inventory, folder });
    });
    return raised;
  }

  readonly #mediaWorkers = () => this.#webrtc?.pool;

  async #createVhosts(): Promise<void> {
    for (const vhost of this.#config.virtualHosts) {
      this.registry.createVhost(vhost, true);
      await this.#certificates.load(vhost);
    }
  }

  #openServices(cluster: Cluster, inventory: CodecInventory): Services {
    const { folder, storageFile, log } = this.#options;
    const common = { config: this.#config, registry: this.registry, folder, log };
    const components = this.#components;
    const nodes = openCluster({ ...common, cluster }, components);
    const work = openTasks({ ...common, nodes });
    const stateFolder = dirname(storageFile);
    const streams = openStreams(
      { ...common, nodes, work, inventory, mediaWorkers: this.#mediaWorkers, stateFolder },
      components,
    );
    const admission = openAdmission({ ...common, nodes, streams }, components);
    const readiness = (): Readiness => this.#readiness();
    const http = new HttpPorts({ ...common, refusals: admission.access.refusals, readiness });
    this.#ports.push(http);
    this.#directory = nodes.directory;
    return { nodes, work, streams, admission, http };
  }

  /** Opens the kinds of tasks and what starts them. Nothing runs until `start`. */
  async #openWork({ nodes: { cluster, directory }, work, streams: { channels, standbys } }: Services) {
    const { registry } = this;
    const { folder, storageFile, log } = this.#options;
    const { tasks } = work;
    const recordFolder = dirname(storageFile);
    const configured = openConfigured({ cluster, registry, tasks, folder, recordFolder, log });
    // before anything that ends streams: their tasks move to the next node
    this.#providers.push(tasks, channels, configured, standbys);
    const pushing = openPushing({
      config: this.#config,
      registry,
      cluster,
      tasks,
      mediaWorkers: this.#mediaWorkers,
      log,
    });
    const recording = await openRecording({ work, registry, node: cluster.self.id, storageFile, log });
    this.#components.push(pushing, recording);
    if (this.#config.modules.dynamicAppRemoval.enable)
      this.#components.push(
        new IdleApplications({ registry, log, inUse: (vhost, app) => directory.inUse(vhost, app) }),
      );
    return {
      records: recording.records,
      recordings: recording.recordings,
      stored: recording.stored,
      kept: recording.kept,
      onDumped: recording.onDumped,
      start: () => {
        tasks.start();
        configured.start();
        channels.start();
        recording.start();
      },
    };
  }

  async #openWebrtc({ nodes, admission }: Services): Promise<WebrtcMedia | undefined> {
    const webrtc = await openWebrtcMedia(this.#config, nodes, admission, this.#options.log);
    if (webrtc === undefined) return undefined;
    this.#webrtc = webrtc;
    this.#publishers.push(webrtc.signalling);
    this.#components.push(webrtc.pool);
    return webrtc;
  }

  /** @param id id of this node */
  #startAlerts(id: string, queues: Queues): Alerts | undefined {
    const { alert: config, name, privacyProtection: hidesClients } = this.#config;
    if (config === undefined) return undefined;
    const { folder, log } = this.#options;
    const sender = { id, name, hidesClients };
    const own = log.child({ module: 'alerts' });
    const { registry } = this;
    const alerts = new Alerts({ registry, queues, config, sender, folder, env: process.env, log: own });
    this.#components.push(alerts);
    return alerts;
  }

  async #open(
    openers: readonly OpenListeners[],
    context: ListenerContext,
    components: Closable[],
    ports: PortTable,
  ): Promise<void> {
    for (const open of openers) {
      for await (const { component, playlists, thumbnails, addresses, http } of open(context)) {
        components.push(component);
        if (playlists !== undefined) this.#playlists.push(playlists);
        this.#thumbnails ??= thumbnails;
        this.#addresses = { ...this.#addresses, ...addresses };
        if (http !== undefined) ports.add(http);
      }
    }
  }

  async #startHttp(
    ports: PortTable,
    { nodes: { directory, others, calls }, admission: { redirects }, http }: Services,
    webrtc: WebrtcMedia | undefined,
  ): Promise<void> {
    const { registry } = this;
    const live = new LiveStreams({ registry, directory, others, calls });
    const { rtmp, whip, srt: [srt] = [] } = this.#addresses;
    const pages = {
      registry,
      live,
      publish: { ...(rtmp && { rtmp }), ...(whip && { whip }), ...(srt && { srt: srt.first }) },
      crossDomains: this.#config.defaults.crossDomains,
      redirects,
      onPublishPage: () => void webrtc?.pool.ready(),
    };
    const encoders = clientConfigurationRoutes({
      registry,
      publish: pages.publish,
      extended: this.#config.modules.ertmp.enable,
    });
    for (const { port, secure, routes, serves, media, takesSocket, handlers } of ports.list()) {
      const certificates = secure ? this.#certificates : undefined;
      const peers =
        Object.keys(handlers).length > 0 && webrtc !== undefined
          ? [webrtc.signalling.routes(handlers, takesSocket)]
          : [];
      await http.listen(port, [...routes, ...peers, encoders, pagesRoutes({ ...pages, serves, media })], certificates);
    }
    const hasTls =
      ports.list().some(({ secure }) => secure) ||
      [this.#addresses.rtmp, this.#addresses.rtmpPlay, this.#addresses.rtsp, this.#addresses.rtspPlay].some(
        (bind) => bind?.tlsPort !== undefined,
      );
    if (hasTls && this.#certificates.initial === undefined) {
      this.#options.log.warn(
        'no virtual host has a certificate: TLS ports refuse every connection until one is loaded',
      );
    }
  }

  async #joinCluster(): Promise<Cluster> {
    const { log } = this.#options;
    const cluster = await joinCluster(this.#config, { ...this.#options, store: this.#store });
    this.#cluster = cluster;
    if (this.#config.cluster !== undefined && cluster.state === 'connected')
      log.info({ event: 'node.connected', node: cluster.self.id }, 'connected to the cluster');
    this.registry.draining = cluster.draining;
    cluster.events.on('drain', (draining) => {
      if (this.#leaving) return;
      this.registry.draining = draining;
      if (draining) log.warn({ event: 'server.draining' }, 'draining: this node accepts no new streams');
      else log.info({ event: 'server.undrained' }, 'no longer draining: this node accepts new streams');
    });
    cluster.events.on('replaced', this.#options.onReplaced);
    return cluster;
  }

  #readiness(): Readiness {
    return readinessOf({
      unready: this.#unready,
      leaving: this.#leaving,
      cluster: this.#cluster,
      full: this.#report?.full,
    });
  }

  /** Reports the state of this node to the others, and to balancers that ask. */
  async #startReport(cluster: Cluster): Promise<void> {
    const { node } = this.#config.cluster ?? {};
    this.#report = new NodeReport({
      cluster,
      registry: this.registry,
      log: this.#options.log,
      facts: {
        version: this.#options.version.version,
        addresses: clientAddresses(this.#config, this.#addresses),
        publicUrl: node?.publicUrl,
        configHashes: configHashes(this.#config),
      },
      limits: node?.limits,
    });
    this.#components.push(this.#report);
    await this.#startAgentCheck(this.#report);
  }

  async #startAgentCheck(report: NodeReport): Promise<void> {
    const port = this.#config.cluster?.node.agentCheckPort;
    if (port === undefined) return;
    const state = (): AgentState => {
      const readiness = this.#readiness();
      return { away: readiness.ready ? undefined : readiness.reason, room: report.room };
    };
    for (const host of this.#config.ip)
      this.#components.push(await listenAgentCheck(host, port, state, this.#options.log));
  }

  /** @returns metrics routes for the API port; undefined when no port serves them */
  async #startMetrics(
    http: HttpPorts,
    options: MetricsOptions,
  ): Promise<Pick<ApiContext, 'apiCalls' | 'beside'> | undefined> {
    const { api, metrics } = this.#config.bind.managers;
    if (api === undefined && metrics === undefined) return undefined;
    const opened = openMetrics(options);
    this.#components.push(opened);
    const routes = metricsRoutes(opened.exposition);
    if (metrics?.port !== undefined) await http.listen(metrics.port, [routes]);
    this.#addresses = { ...this.#addresses, metrics: metrics?.port };
    return { apiCalls: opened.apiCalls, beside: routes };
  }

  async #openApi(context: ApiContext): Promise<ApiListener | undefined> {
    const api = await openApi(context, this.#components);
    if (api !== undefined) this.#addresses = { ...this.#addresses, api: api.ports };
    return api;
  }

  async #startApi(http: HttpPorts, { ports, routes, certificates }: ApiListener): Promise<void> {
    if (ports.port !== undefined) await http.listen(ports.port, [apiHomeRoutes, routes]);
    if (ports.tlsPort !== undefined) await http.listen(ports.tlsPort, [apiHomeRoutes, routes], certificates);
  }

  async #stop(): Promise<void> {
    this.#unready = 'stopping';
    this.#leaving = true;
    // other nodes then keep the viewers of streams that end here
    await this.#cluster?.retire();
    await closeAll(this.#providers);
    this.registry.close(STOPPED);
    await closeAll(this.#publishers);
    await closeAll(this.#ports);
    await closeAll(this.#components);
    this.#unwatchDisks?.();
    await this.#cluster?.close();
  }
}
