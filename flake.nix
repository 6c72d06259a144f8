# Untried: no machine with Nix was at hand.
{
  description = "Gimlet: a coding agent for local models, in one program";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "gimlet-agent";
          version = "0.1.0";
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "--ignore-rust-version" "--package" "gimlet-agent" "--bins" ];
          # The tests start jails and containers, which the builder's own sandbox does not allow.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            $out/bin/gimlet man --dir man
            installManPage man/*.1
            installShellCompletion --cmd gimlet \
              --bash <($out/bin/gimlet completions bash) \
              --zsh <($out/bin/gimlet completions zsh) \
              --fish <($out/bin/gimlet completions fish)
          '';
          meta = {
            description = "A coding agent for local models, in one program";
            license = [ pkgs.lib.licenses.asl20 pkgs.lib.licenses.mit ];
            mainProgram = "gimlet";
            platforms = systems;
          };
        };
      });
    };
}
