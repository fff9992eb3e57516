import type { FastifyPluginAsync } from 'fastify';
import type { RefusalCounts } from '../access/refusal-counts.ts';
import type { ServerConfig } from '../config/model.ts';
import { blockList } from '../config/networks.ts';
import type { Logger } from '../log/log.ts';
import type { CertificateStore } from '../tls/certificates.ts';
import { healthRoutes, type Readiness } from '../web/health.ts';
import { createHttpPort } from '../web/http-port.ts';
import { closeAll, type Closable } from './closable.ts';

export interface HttpPortsOptions {
  readonly config: ServerConfig;
  readonly refusals: RefusalCounts;
  readonly readiness: () => Readiness;
  readonly log: Logger;
}

/** The HTTP ports of a node, each with the routes for its health. */
export class HttpPorts implements Closable {
  readonly #options: HttpPortsOptions;
  readonly #open: Closable[] = [];

  constructor(options: HttpPortsOptions) {
    this.#options = options;
  }

  /**
   * @param certificates makes it a TLS port
   * @throws errors of the system when the port is not available
   */
  async listen(port: number, routes: readonly FastifyPluginAsync[], certificates?: CertificateStore): Promise<void> {
    const { config, refusals, readiness, log } = this.#options;
    const { modules, ip } = config;
    const http = createHttpPort({
      proxyNetworks: blockList(modules.proxyProtocol?.networks),
      forwardedNetworks: blockList(modules.forwardedFor?.networks),
      tls: certificates && { certificates, http2: modules.http2.enable },
      refusals,
      log,
    });
    this.#open.push(http);
    await http.app.register(healthRoutes(readiness));
    for (const plugin of routes) await http.app.register(plugin);
    await http.listen(ip, port);
  }

  close(): Promise<void> {
    return closeAll(this.#open);
  }
}
