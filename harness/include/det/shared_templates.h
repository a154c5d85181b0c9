// Class templates of LibTorch with their code in libdet, for the precompiled header. Without this list, Clang
// instantiates their virtual functions in every trial: 1.2 of 3.4 CPU seconds for a trial of 50 lines.
#pragma once

#include <torch/data.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include "det/optim.h"

/// Applies DO(...) to each class.
#define DET_SHARED_TEMPLATES(DO)                                                                       \
  DO(c10::SingleElementType<c10::TypeKind::FutureType, c10::FutureType>)                               \
  DO(c10::SingleElementType<c10::TypeKind::ListType, c10::ListType>)                                   \
  DO(c10::SingleElementType<c10::TypeKind::RRefType, c10::RRefType>)                                   \
  DO(torch::data::datasets::Dataset<torch::data::datasets::MNIST>)                                     \
  DO(torch::data::datasets::Dataset<torch::data::datasets::TensorDataset, torch::data::TensorExample>) \
  DO(torch::nn::Cloneable<torch::nn::AdaptiveLogSoftmaxWithLossImpl>)                                  \
  DO(torch::nn::Cloneable<torch::nn::BilinearImpl>)                                                    \
  DO(torch::nn::Cloneable<torch::nn::Conv1dImpl>)                                                      \
  DO(torch::nn::Cloneable<torch::nn::Conv2dImpl>)                                                      \
  DO(torch::nn::Cloneable<torch::nn::Conv3dImpl>)                                                      \
  DO(torch::nn::Cloneable<torch::nn::ConvTranspose1dImpl>)                                             \
  DO(torch::nn::Cloneable<torch::nn::ConvTranspose2dImpl>)                                             \
  DO(torch::nn::Cloneable<torch::nn::ConvTranspose3dImpl>)                                             \
  DO(torch::nn::Cloneable<torch::nn::CrossMapLRN2dImpl>)                                               \
  DO(torch::nn::Cloneable<torch::nn::EmbeddingBagImpl>)                                                \
  DO(torch::nn::Cloneable<torch::nn::EmbeddingImpl>)                                                   \
  DO(torch::nn::Cloneable<torch::nn::FoldImpl>)                                                        \
  DO(torch::nn::Cloneable<torch::nn::FractionalMaxPool2dImpl>)                                         \
  DO(torch::nn::Cloneable<torch::nn::FractionalMaxPool3dImpl>)                                         \
  DO(torch::nn::Cloneable<torch::nn::GRUCellImpl>)                                                     \
  DO(torch::nn::Cloneable<torch::nn::GRUImpl>)                                                         \
  DO(torch::nn::Cloneable<torch::nn::GroupNormImpl>)                                                   \
  DO(torch::nn::Cloneable<torch::nn::LSTMCellImpl>)                                                    \
  DO(torch::nn::Cloneable<torch::nn::LSTMImpl>)                                                        \
  DO(torch::nn::Cloneable<torch::nn::LayerNormImpl>)                                                   \
  DO(torch::nn::Cloneable<torch::nn::LinearImpl>)                                                      \
  DO(torch::nn::Cloneable<torch::nn::LocalResponseNormImpl>)                                           \
  DO(torch::nn::Cloneable<torch::nn::LogSoftmaxImpl>)                                                  \
  DO(torch::nn::Cloneable<torch::nn::ModuleDictImpl>)                                                  \
  DO(torch::nn::Cloneable<torch::nn::MultiheadAttentionImpl>)                                          \
  DO(torch::nn::Cloneable<torch::nn::ParameterDictImpl>)                                               \
  DO(torch::nn::Cloneable<torch::nn::RNNCellImpl>)                                                     \
  DO(torch::nn::Cloneable<torch::nn::RNNImpl>)                                                         \
  DO(torch::nn::Cloneable<torch::nn::SequentialImpl>)                                                  \
  DO(torch::nn::Cloneable<torch::nn::SoftmaxImpl>)                                                     \
  DO(torch::nn::Cloneable<torch::nn::SoftminImpl>)                                                     \
  DO(torch::nn::Cloneable<torch::nn::ThresholdImpl>)                                                   \
  DO(torch::nn::Cloneable<torch::nn::TransformerDecoderImpl>)                                          \
  DO(torch::nn::Cloneable<torch::nn::TransformerDecoderLayerImpl>)                                     \
  DO(torch::nn::Cloneable<torch::nn::TransformerEncoderImpl>)                                          \
  DO(torch::nn::Cloneable<torch::nn::TransformerEncoderLayerImpl>)                                     \
  DO(torch::nn::Cloneable<torch::nn::UnflattenImpl>)                                                   \
  DO(torch::nn::Cloneable<torch::nn::UnfoldImpl>)                                                      \
  DO(torch::nn::Cloneable<torch::nn::ZeroPad2dImpl>)                                                   \
  DO(torch::nn::ConvNdImpl<1, torch::nn::Conv1dImpl>)                                                  \
  DO(torch::nn::ConvNdImpl<1, torch::nn::ConvTranspose1dImpl>)                                         \
  DO(torch::nn::ConvNdImpl<2, torch::nn::Conv2dImpl>)                                                  \
  DO(torch::nn::ConvNdImpl<2, torch::nn::ConvTranspose2dImpl>)                                         \
  DO(torch::nn::ConvNdImpl<3, torch::nn::Conv3dImpl>)                                                  \
  DO(torch::nn::ConvNdImpl<3, torch::nn::ConvTranspose3dImpl>)                                         \
  DO(torch::nn::ConvTransposeNdImpl<1, torch::nn::ConvTranspose1dImpl>)                                \
  DO(torch::nn::ConvTransposeNdImpl<2, torch::nn::ConvTranspose2dImpl>)                                \
  DO(torch::nn::ConvTransposeNdImpl<3, torch::nn::ConvTranspose3dImpl>)                                \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::ASGDOptions>)                                 \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::AdadeltaOptions>)                             \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::AdafactorOptions>)                            \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::AdamaxOptions>)                               \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::MuonOptions>)                                 \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::NAdamOptions>)                                \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::RAdamOptions>)                                \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::RpropOptions>)                                \
  DO(torch::optim::OptimizerCloneableOptions<det::optim::SparseAdamOptions>)                           \
  DO(torch::optim::OptimizerCloneableOptions<torch::optim::AdagradOptions>)                            \
  DO(torch::optim::OptimizerCloneableOptions<torch::optim::AdamOptions>)                               \
  DO(torch::optim::OptimizerCloneableOptions<torch::optim::AdamWOptions>)                              \
  DO(torch::optim::OptimizerCloneableOptions<torch::optim::LBFGSOptions>)                              \
  DO(torch::optim::OptimizerCloneableOptions<torch::optim::RMSpropOptions>)                            \
  DO(torch::optim::OptimizerCloneableOptions<torch::optim::SGDOptions>)                                \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::ASGDParamState>)                           \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::AdadeltaParamState>)                       \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::AdafactorParamState>)                      \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::AdamaxParamState>)                         \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::MuonParamState>)                           \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::NAdamParamState>)                          \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::RAdamParamState>)                          \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::RpropParamState>)                          \
  DO(torch::optim::OptimizerCloneableParamState<det::optim::SparseAdamParamState>)                     \
  DO(torch::optim::OptimizerCloneableParamState<torch::optim::AdagradParamState>)                      \
  DO(torch::optim::OptimizerCloneableParamState<torch::optim::AdamParamState>)                         \
  DO(torch::optim::OptimizerCloneableParamState<torch::optim::AdamWParamState>)                        \
  DO(torch::optim::OptimizerCloneableParamState<torch::optim::LBFGSParamState>)                        \
  DO(torch::optim::OptimizerCloneableParamState<torch::optim::RMSpropParamState>)                      \
  DO(torch::optim::OptimizerCloneableParamState<torch::optim::SGDParamState>)
